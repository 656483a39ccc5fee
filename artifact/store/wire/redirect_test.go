package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// seenAs makes a server's connections look as if they came from an address.
type seenAs struct {
	net.Conn
	address net.Addr
}

func (s seenAs) RemoteAddr() net.Addr { return s.address }

// get asks a client that takes http://public/ for a server at a public address, and everything else for what it is.
func get(t *testing.T, private bool, handler http.HandlerFunc) (string, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	transport := &http.Transport{}
	Tune(transport)
	direct := transport.DialContext
	transport.DialContext = func(ctx context.Context, kind, address string) (net.Conn, error) {
		if !strings.HasPrefix(address, "public:") {
			return direct(ctx, kind, address)
		}
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		return seenAs{conn, &net.TCPAddr{IP: net.IPv4(93, 184, 215, 14), Port: 80}}, err
	}
	resp, err := NewClient(transport, private).Get("http://public/")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return string(data), err
}

// TestRedirectFromPublicToPrivate holds that nothing is sent to an address that is not public after a redirect of a
// server that is, at once or by way of another redirect, unless that is allowed.
func TestRedirectFromPublicToPrivate(t *testing.T) {
	asked := 0
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = io.WriteString(w, "secret")
	}))
	defer inner.Close()
	for name, to := range map[string]string{"by address": inner.URL, "by a name that resolves to it": strings.Replace(inner.URL, "127.0.0.1", "localhost", 1), "the second time": "http://public/again"} {
		redirect := func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/again" {
				http.Redirect(w, r, inner.URL, http.StatusFound)
				return
			}
			http.Redirect(w, r, to, http.StatusFound)
		}
		asked = 0
		_, err := get(t, false, redirect)
		var w wayward
		if !errors.As(err, &w) || !strings.Contains(err.Error(), "redirects from a public address") || asked > 0 {
			t.Errorf("%s: %v, and the private server was asked %d times", name, err, asked)
		}
		if text, err := get(t, true, redirect); err != nil || text != "secret" {
			t.Errorf("%s, allowed: %q, %v", name, text, err)
		}
	}
}

// TestRedirectsAmongPrivateServers holds that a private server may redirect to another.
func TestRedirectsAmongPrivateServers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/there", http.StatusFound)
		}
	}))
	defer server.Close()
	resp, err := NewClient(NewTransport(), false).Get(server.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}

func TestInternalAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1": true, "10.1.2.3": true, "169.254.169.254": true, "192.168.0.1": true, "100.64.0.1": true, "0.0.0.0": true, "::1": true, "fe80::1": true,
		"fd00::1": true, "::ffff:127.0.0.1": true, "::ffff:169.254.169.254": true, "93.184.215.14": false, "2606:2800:21f::1": false,
	} {
		if got := internal(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}
