package redirect

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// seenAs makes a server's connections seem to come from an address.
type seenAs struct {
	net.Conn
	address net.Addr
}

func (s seenAs) RemoteAddr() net.Addr { return s.address }

// get uses a client for which http://public/ is a server at a public address; all other servers have their real
// addresses.
func get(t *testing.T, private bool, handler http.HandlerFunc) (string, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	transport := &http.Transport{}
	direct := Dial(net.Dialer{})
	transport.DialContext = func(ctx context.Context, kind, address string) (net.Conn, error) {
		if !strings.HasPrefix(address, "public:") {
			return direct(ctx, kind, address)
		}
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		return seenAs{conn, &net.TCPAddr{IP: net.IPv4(93, 184, 215, 14), Port: 80}}, err
	}
	resp, err := (&http.Client{Transport: Guard(transport), CheckRedirect: Follow(private)}).Get("http://public/")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return string(data), err
}

// TestRedirectFromPublicToPrivate checks that after a redirect of a public server nothing is sent to a private address,
// directly or after another redirect, unless that is allowed.
func TestRedirectFromPublicToPrivate(t *testing.T) {
	requests := 0
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		_, _ = io.WriteString(w, "secret")
	}))
	defer inner.Close()
	for name, to := range map[string]string{"by address": inner.URL,
		"by a name that resolves to it": strings.Replace(inner.URL, "127.0.0.1", "localhost", 1),
		"the second time":               "http://public/again"} {
		redirect := func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/again" {
				http.Redirect(w, r, inner.URL, http.StatusFound)
				return
			}
			http.Redirect(w, r, to, http.StatusFound)
		}
		requests = 0
		_, err := get(t, false, redirect)
		var w Refused
		if !errors.As(err, &w) || !strings.Contains(err.Error(), "redirects from a public address") || requests > 0 {
			t.Errorf("%s: %v, and the private server got %d requests", name, err, requests)
		}
		if text, err := get(t, true, redirect); err != nil || text != "secret" {
			t.Errorf("%s, allowed: %q, %v", name, text, err)
		}
	}
}

// TestRedirectToAnotherScheme checks that redirects to other schemes than http and https are refused with a clear
// error.
func TestRedirectToAnotherScheme(t *testing.T) {
	for location, want := range map[string]string{
		"file:///etc/passwd": "a URL of file", "ftp://public/x": "a URL of ftp", "data:text/plain,x": "a URL of data",
		"http://[::1": "an invalid URL", "http://a b/": "an invalid URL",
	} {
		_, err := get(t, true, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", location)
			w.WriteHeader(http.StatusFound)
		})
		var w Refused
		if !errors.As(err, &w) || !strings.Contains(err.Error(), want) {
			t.Errorf("a redirect to %s: %v, want it refused for %q", location, err, want)
		}
	}
}

// TestRedirectsAmongPrivateServers checks that a private server may redirect to another.
func TestRedirectsAmongPrivateServers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/there", http.StatusFound)
		}
	}))
	defer server.Close()
	resp, err := (&http.Client{Transport: Guard(&http.Transport{DialContext: Dial(net.Dialer{})}),
		CheckRedirect: Follow(false)}).Get(server.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}

func TestInternalAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1": true, "10.1.2.3": true, "169.254.169.254": true, "192.168.0.1": true, "100.64.0.1": true,
		"0.0.0.0": true, "::1": true, "fe80::1": true,
		"fd00::1": true, "::ffff:127.0.0.1": true, "::ffff:169.254.169.254": true, "93.184.215.14": false,
		"2606:2800:21f::1": false,
	} {
		if got := internal(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}

// TestPooledConnectionToAPrivateServerIsNotUsed first opens a connection to the private server without a redirect.
func TestPooledConnectionToAPrivateServerIsNotUsed(t *testing.T) {
	requests := 0
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		_, _ = io.WriteString(w, "secret")
	}))
	defer inner.Close()
	outer := httptest.NewServer(http.RedirectHandler(inner.URL, http.StatusFound))
	defer outer.Close()
	direct := Dial(net.Dialer{})
	transport := &http.Transport{DialContext: func(ctx context.Context, kind, address string) (net.Conn, error) {
		if !strings.HasPrefix(address, "public:") {
			return direct(ctx, kind, address)
		}
		conn, err := net.Dial("tcp", outer.Listener.Addr().String())
		return seenAs{conn, &net.TCPAddr{IP: net.IPv4(93, 184, 215, 14), Port: 80}}, err
	}}
	client := &http.Client{Transport: Guard(transport), CheckRedirect: Follow(false)}
	for range 2 {
		resp, err := client.Get(inner.URL)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		var w Refused
		if _, err := client.Get("http://public/"); !errors.As(err, &w) {
			t.Errorf("%v, want a refusal", err)
		}
	}
	if requests != 2 {
		t.Errorf("the private server got %d requests, want the two that are intended", requests)
	}
}

// TestPrivateProxyDoesNotAllowPrivateRedirect connects to a public server through a proxy on a private address.
func TestPrivateProxyDoesNotAllowPrivateRedirect(t *testing.T) {
	to := ""
	var requests []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.URL.Host)
		if r.URL.Host == "93.184.215.14" {
			http.Redirect(w, r, to, http.StatusFound)
		}
	}))
	defer proxy.Close()
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := func(private bool) *http.Client {
		return &http.Client{Transport: Guard(&http.Transport{Proxy: http.ProxyURL(at), DialContext: Dial(net.Dialer{})}),
			CheckRedirect: Follow(private)}
	}
	for _, to = range []string{"http://169.254.169.254/latest", "http://localhost:1/", "http://127.1/",
		"http://2852039166/", "http://0xa9fea9fe/", "http://metadata.google.internal/", "http://[::ffff:10.0.0.1]/"} {
		requests = nil
		var w Refused
		if _, err := client(false).Get("http://93.184.215.14/"); !errors.As(err, &w) || len(requests) != 1 {
			t.Errorf("%s: %v, the proxy got the requests %q", to, err, requests)
		}
		if resp, err := client(true).Get("http://93.184.215.14/"); err != nil {
			t.Errorf("%s, allowed: %v", to, err)
		} else {
			_ = resp.Body.Close()
		}
	}
	to = "http://93.184.215.15/"
	resp, err := client(false).Get("http://93.184.215.14/")
	if err != nil {
		t.Fatalf("from a public server to another: %v", err)
	}
	_ = resp.Body.Close()
}

// TestRedirectsSendNoReferer checks that the URL of a request, which may have credentials, is in no log of a server to
// which a redirect leads, be it the same one.
func TestRedirectsSendNoReferer(t *testing.T) {
	var seen http.Header
	see := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header })
	other := httptest.NewServer(see)
	defer other.Close()
	for _, to := range []string{other.URL + "/x", "/x"} {
		mux := http.NewServeMux()
		mux.Handle("/x", see)
		mux.Handle("/", http.RedirectHandler(to, http.StatusFound))
		first := httptest.NewServer(mux)
		seen = nil
		resp, err := (&http.Client{CheckRedirect: Follow(true)}).Get(first.URL + "/?X-Amz-Signature=secret")
		if err == nil {
			err = resp.Body.Close()
		}
		if first.Close(); err != nil || seen == nil || seen.Get("Referer") != "" {
			t.Errorf("after a redirect to %s the server received %v: %v", to, seen, err)
		}
	}
}
