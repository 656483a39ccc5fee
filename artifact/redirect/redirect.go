// Package redirect keeps what follows a redirect on the network that the redirect came from.
//
// A server that a person named may answer with a redirect to anywhere. One on a public address could so make a
// host ask its own network for what only that network may see, such as the metadata of a cloud instance. So what
// follows a redirect of a public server goes to public addresses only. The address counts that is dialled, not
// the name, so that a name which resolves to something else the next time gains nothing. Such requests have
// connections of their own: one that was dialled before without the check is not used again.
//
// Behind a proxy the address is the proxy's. There the names count as this host resolves them.
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

// Refused is a redirect that is not followed.
type Refused struct{ Err error }

func (r Refused) Error() string { return r.Err.Error() }

// Unwrap has the reason, with its hint.
func (r Refused) Unwrap() error { return r.Err }

const mostRedirects = 5

// Follow follows a few redirects, all to http or https and none that leads from https to http. Credentials are not sent
// to another host or port than the first, and neither is the URL that redirected, whose query may hold some. And,
// unless private ones are allowed, none that leads from a public address to another. The latter takes a transport made
// by Guard.
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

// keepCredentials takes from a request that follows a redirect what the server there need not know. The client of the
// standard library does so with Authorization and Cookie alone, not with headers such as X-Vault-Token, and not for
// another port or a host below the first.
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

// harmless are headers that say what is asked for, and not by whom.
func harmless() []string {
	return []string{"Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "Range", "User-Agent"}
}

// mark has a request that follows a redirect go to public addresses only, if its predecessor was public.
func mark(req *http.Request) {
	if req.Response == nil || req.Response.Request == nil {
		return
	}
	if h, ok := req.Response.Request.Context().Value(hopKey{}).(*hop); ok && (h.public || h.guarded) {
		*req = *req.WithContext(context.WithValue(req.Context(), guardKey{}, true))
	}
}

// hop is a request, as its redirect sees it.
type hop struct {
	public  bool // it was answered from a public address
	guarded bool // it may go to public addresses only
}

type (
	hopKey   struct{}
	guardKey struct{}
)

func guarded(ctx context.Context) bool {
	only, _ := ctx.Value(guardKey{}).(bool)
	return only
}

// Guard makes a transport, whose DialContext must be one of Dial, note where answers come from, and keep the requests
// that Follow restricts to public addresses.
func Guard(t *http.Transport) *Guarded { return &Guarded{any: t, public: t.Clone()} }

// Guarded is a transport with connections of two kinds.
type Guarded struct{ any, public *http.Transport }

// RoundTrip makes a request. A redirect to what is no URL is an error here, since the client of the standard library
// would not say that the server sent it.
func (g *Guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := g.roundTrip(req)
	if err != nil || resp.StatusCode < 300 || resp.StatusCode >= 400 {
		return resp, err
	}
	if _, err := resp.Location(); err != nil && !errors.Is(err, http.ErrNoLocation) {
		_ = resp.Body.Close() // nothing of it is used
		return nil, Refused{errors.New("it redirects to what is no URL")}
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
		return g.any.RoundTrip(req.WithContext(context.WithValue(ctx, guardKey{}, false))) // dials the proxy
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

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
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

// Dial makes a dialer refuse what Guard does not allow, before anything is sent.
func Dial(d net.Dialer) func(ctx context.Context, kind, address string) (net.Conn, error) {
	d.ControlContext = control
	return func(ctx context.Context, kind, address string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, kind, address)
		var refused Refused
		if err != nil && errors.As(err, &refused) { // without the address that was tried beside
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
	return Refused{diag.WithHint(fmt.Errorf("it redirects from a public address to %s, which is not public", to),
		"name the place that it redirects to, or allow it: `private_redirects=1` in the URL of a store, `fetch.private_redirects` for sources of states")}
}

// internal reports whether an address is not one of the public network: loopback, link-local, private, shared by
// providers (RFC 6598), or none that a server has.
func internal(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() || shared().Contains(a) || !a.IsValid()
}

func shared() netip.Prefix { return netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64, 0, 0}), 10) }

// lookupTime is how long a name that a proxy is asked for may take to resolve here.
const lookupTime = 3 * time.Second

// internalName reports whether a host's name leads to what is not public. One that this host cannot resolve is left to
// the proxy, unless it can only be an address in an unusual form or a name of a local network.
func internalName(ctx context.Context, host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if address, err := netip.ParseAddr(host); err == nil {
		return internal(address)
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	switch {
	case last == "localhost", last == "internal", last == "local", strings.HasPrefix(last, "0x"), strings.Trim(last, "0123456789") == "":
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
