package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"syscall"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// A server that a person named may answer with a redirect to anywhere. One on a public address could so make a host ask
// its own network for what only that network may see, such as the metadata of a cloud instance. So what follows a
// redirect of a public server is dialled at public addresses only. The address counts that is dialled, not the name, so
// that a name which resolves to something else the next time gains nothing.

// hop is a request, as its redirect sees it.
type hop struct {
	public  bool // it was answered from a public address
	guarded bool // it may go to public addresses only
}

type (
	hopKey   struct{}
	guardKey struct{}
)

// guard notes where the answers come from.
type guard struct{ next http.RoundTripper }

func (g guard) RoundTrip(req *http.Request) (*http.Response, error) {
	h := &hop{guarded: guarded(req.Context())}
	ctx := context.WithValue(req.Context(), hopKey{}, h)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		address, err := netip.ParseAddrPort(info.Conn.RemoteAddr().String())
		h.public = err == nil && !internal(address.Addr())
	}})
	return g.next.RoundTrip(req.WithContext(ctx))
}

func guarded(ctx context.Context) bool { return ctx.Value(guardKey{}) != nil }

// guardRedirect has a request that follows a redirect dial public addresses only, if its predecessor was public.
func guardRedirect(req *http.Request) {
	if req.Response == nil || req.Response.Request == nil {
		return
	}
	if h, ok := req.Response.Request.Context().Value(hopKey{}).(*hop); ok && (h.public || h.guarded) {
		*req = *req.WithContext(context.WithValue(req.Context(), guardKey{}, true))
	}
}

// control refuses an address before anything is sent to it.
func control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	if !guarded(ctx) {
		return nil
	}
	to, err := netip.ParseAddrPort(address)
	if err == nil && !internal(to.Addr()) {
		return nil
	}
	return wayward{diag.WithHint(fmt.Errorf("it redirects from a public address to %s, which is not public", address),
		"name the place that it redirects to, or allow it: `private_redirects=1` in the URL of a store, `fetch.private_redirects` for sources of states")}
}

// internal reports whether an address is not one of the public network: loopback, link-local, private, shared by
// providers (RFC 6598), or none that a server has.
func internal(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() || shared().Contains(a) || !a.IsValid()
}

func shared() netip.Prefix { return netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64, 0, 0}), 10) }

// refusedRedirect finds a refusal of control in the error of a dial, which says which address was tried beside.
func refusedRedirect(err error) error {
	var w wayward
	var op *net.OpError
	if errors.As(err, &op) && errors.As(err, &w) {
		return w
	}
	return err
}
