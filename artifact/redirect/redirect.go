// Package redirect restricts where redirects may lead.
//
// A server that a person configured may redirect anywhere. A public server could thus make a host request something
// from its own network that only that network may see, such as the metadata of a cloud instance. Therefore redirects of
// public servers are followed to public addresses only. The address that is dialed counts, not the name, so that a name
// that resolves to another address the next time does not help an attacker. Such requests use separate connections:
// a connection that was dialed earlier without the check is not reused.
//
// Behind a proxy, the dialed address is the proxy's. There the addresses count to which this host resolves the names.
package redirect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Refused is the error for a redirect that is not followed.
type Refused struct{ Err error }

func (r Refused) Error() string { return r.Err.Error() }

// Unwrap returns the reason, with its hint.
func (r Refused) Unwrap() error { return r.Err }

const mostRedirects = 5

// Follow returns a function for http.Client.CheckRedirect. It follows a few redirects, only to http or https, and none
// from https to http. Credentials are not sent to another host or port than the first, and neither is the URL that
// redirected, whose query may contain some. Unless private is set, redirects from public to private addresses are
// refused, which needs a transport made by Guard.
func Follow(private bool) func(req *http.Request, via []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if len(via) > mostRedirects {
			return Refused{fmt.Errorf("more than %d redirects", mostRedirects)}
		}
		if scheme := req.URL.Scheme; scheme != "http" && scheme != "https" {
			return Refused{fmt.Errorf("it redirects to a URL of %s, and redirects to http and https alone are followed", scheme)}
		}
		if via[0].URL.Scheme == "https" && req.URL.Scheme != "https" {
			return Refused{errors.New("it redirects from https to " + req.URL.Scheme)}
		}
		keepCredentials(req, via)
		if !private {
			mark(req)
		}
		return nil
	}
}

// keepCredentials removes headers from a request to another server that it need not see. The client of the standard
// library only removes Authorization and Cookie, not headers such as X-Vault-Token, and neither for another port nor
// for a subdomain of the first host.
func keepCredentials(req *http.Request, via []*http.Request) {
	req.Header.Del("Referer")
	same := func(r *http.Request) bool { return r.URL.Host == via[0].URL.Host }
	if same(req) && !slices.ContainsFunc(via, func(r *http.Request) bool { return !same(r) }) {
		return
	}
	for name := range req.Header {
		if !slices.Contains(harmless(), name) {
			req.Header.Del(name)
		}
	}
}

// harmless lists headers that describe the requested content and do not identify the client.
func harmless() []string {
	return []string{"Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "If-Match", "If-Modified-Since",
		"If-None-Match", "If-Range", "Range", "User-Agent"}
}

// mark restricts a redirected request to public addresses if the previous request was public or restricted.
func mark(req *http.Request) {
	if req.Response == nil || req.Response.Request == nil {
		return
	}
	if h, ok := req.Response.Request.Context().Value(hopKey{}).(*hop); ok && (h.public || h.guarded) {
		*req = *req.WithContext(context.WithValue(req.Context(), guardKey{}, true))
	}
}

// hop has the properties of a request when it is redirected.
type hop struct {
	public  bool // the response came from a public address
	guarded bool // the request was restricted to public addresses
}

type (
	hopKey   struct{}
	guardKey struct{}
)

func guarded(ctx context.Context) bool {
	only, _ := ctx.Value(guardKey{}).(bool)
	return only
}

// Guard returns a transport that notes the addresses of responses, and restricts to public addresses the requests that
// Follow has marked. The DialContext of t must be made by Dial.
func Guard(t *http.Transport) *Guarded { return &Guarded{any: t, public: t.Clone()} }

// Guarded is a transport with separate connections for restricted requests.
type Guarded struct{ any, public *http.Transport }

// RoundTrip performs a request. It returns an error for a redirect to an invalid URL, since the error of the standard
// library's client does not show that the server sent it.
func (g *Guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := g.roundTrip(req)
	if err != nil || resp.StatusCode < 300 || resp.StatusCode >= 400 {
		return resp, err
	}
	if _, err := resp.Location(); err != nil && !errors.Is(err, http.ErrNoLocation) {
		_ = resp.Body.Close() // the body is not used
		return nil, Refused{errors.New("it redirects to an invalid URL")}
	}
	return resp, nil
}

func (g *Guarded) roundTrip(req *http.Request) (*http.Response, error) {
	h := &hop{guarded: guarded(req.Context())}
	ctx := context.WithValue(req.Context(), hopKey{}, h)
	if g.proxied(req) {
		private := internalName(ctx, req.URL.Hostname())
		if h.guarded && private {
			return nil, refuse(req.URL.Hostname())
		}
		h.public = !private
		return g.any.RoundTrip(req.WithContext(context.WithValue(ctx, guardKey{}, false))) // connects to the proxy
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		address, err := netip.ParseAddrPort(info.Conn.RemoteAddr().String())
		h.public = err == nil && !internal(address.Addr())
	}})
	if h.guarded {
		return g.public.RoundTrip(req.WithContext(ctx))
	}
	return g.any.RoundTrip(req.WithContext(ctx))
}

// CloseIdleConnections implements the method that http.Client.CloseIdleConnections calls.
func (g *Guarded) CloseIdleConnections() {
	g.any.CloseIdleConnections()
	g.public.CloseIdleConnections()
}

func (g *Guarded) proxied(req *http.Request) bool {
	if g.any.Proxy == nil {
		return false
	}
	proxy, err := g.any.Proxy(req)
	return err == nil && proxy != nil
}

// Dial returns a dial function that refuses addresses that Guard does not allow, before anything is sent.
func Dial(d net.Dialer) func(ctx context.Context, kind, address string) (net.Conn, error) {
	d.ControlContext = control
	return func(ctx context.Context, kind, address string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, kind, address)
		var refused Refused
		if err != nil && errors.As(err, &refused) { // the address that was dialed concurrently is left out
			return nil, refused
		}
		return conn, err
	}
}

func control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	if !guarded(ctx) {
		return nil
	}
	to, err := netip.ParseAddrPort(address)
	if err == nil && !internal(to.Addr()) {
		return nil
	}
	return refuse(address)
}

func refuse(to string) error {
	return Refused{diag.Source.Hint(fmt.Errorf("it redirects from a public address to %s, which is not public", to),
		"name the place that it redirects to, or allow it: `private_redirects=1` in the URL of a store, "+
			"`fetch.private_redirects` for sources of states")}
}

// internal reports whether an address is not public: loopback, link-local, private, shared by providers (RFC 6598), or
// no server's address at all.
func internal(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() ||
		shared().Contains(a) || !a.IsValid()
}

func shared() netip.Prefix { return netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64, 0, 0}), 10) }

// lookupTime limits how long this host resolves a name that a proxy is to connect to.
const lookupTime = 3 * time.Second

// internalName reports whether a host's name leads to an address that is not public. A name that this host cannot
// resolve is left to the proxy, unless it looks like an unusual form of an address or a name of a local network.
func internalName(ctx context.Context, host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if address, err := netip.ParseAddr(host); err == nil {
		return internal(address)
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	switch {
	case last == "localhost", last == "internal", last == "local", strings.HasPrefix(last, "0x"),
		strings.Trim(last, "0123456789") == "":
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return false
	}
	for _, a := range addresses {
		if internal(a) {
			return true
		}
	}
	return false
}
