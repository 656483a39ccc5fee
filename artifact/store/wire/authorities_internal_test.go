package wire

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// tlsServer returns a server that echoes bodies, and a transport that verifies it.
func tlsServer(t *testing.T) (string, *http.Transport) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, server.Client().Transport.(*http.Transport)
}

// counted counts the requests that a transport performs.
type counted struct {
	http.RoundTripper
	requests int
}

func (c *counted) RoundTrip(req *http.Request) (*http.Response, error) {
	c.requests++
	return c.RoundTripper.RoundTrip(req)
}

// without returns a transport that verifies no server.
func without() http.RoundTripper {
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: x509.NewCertPool()}}
}

// TestServersAreVerifiedWithAllAuthoritiesIfTheBundleLacksTheirs sends requests with and without bodies to servers that
// the bundle verifies, and to those that it does not verify.
func TestServersAreVerifiedWithAllAuthoritiesIfTheBundleLacksTheirs(t *testing.T) {
	url, trusted := tlsServer(t)
	send := func(a *authorities, body io.Reader) (string, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := a.RoundTrip(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		return string(data), err
	}
	of := func(bundled, all http.RoundTripper) (*authorities, *counted, *counted) {
		first, second := &counted{RoundTripper: bundled}, &counted{RoundTripper: all}
		return &authorities{bundled: func() http.RoundTripper { return first }, all: second}, first, second
	}
	for name, body := range map[string]func() io.Reader{"no body": func() io.Reader { return nil },
		"a body": func() io.Reader { return strings.NewReader("sent") }} {
		want := map[string]string{"a body": "sent"}[name]
		a, bundled, all := of(trusted, without())
		if got, err := send(a, body()); err != nil || got != want || bundled.requests != 1 || all.requests != 0 {
			t.Errorf("%s, verified by the bundle: %q, %v; requests: %d, %d", name, got, err, bundled.requests, all.requests)
		}
		a, bundled, all = of(without(), trusted)
		for range 2 {
			if got, err := send(a, body()); err != nil || got != want {
				t.Errorf("%s, verified by another authority: %q, %v", name, got, err)
			}
		}
		if bundled.requests != 1 || all.requests != 2 {
			t.Errorf("%s: the bundle was used %d times, and all authorities %d times", name, bundled.requests, all.requests)
		}
		a, _, _ = of(without(), without())
		if _, err := send(a, body()); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s, verified by none: %v", name, err)
		}
	}
	once := func() io.Reader { return io.LimitReader(strings.NewReader("sent"), 4) } // cannot be read again
	a, _, _ := of(without(), trusted)
	if _, err := send(a, once()); err == nil {
		t.Error("a body that cannot be read again was sent twice")
	}
	if got, err := send(a, once()); err != nil || got != "sent" {
		t.Errorf("after the first failure: %q, %v", got, err)
	}
}

// TestOwnAuthoritiesAreKept gives a transport authorities of its own.
func TestOwnAuthoritiesAreKept(t *testing.T) {
	_, trusted := tlsServer(t)
	got := Authorities(trusted, func(t *http.Transport) http.RoundTripper { return t })
	if got != http.RoundTripper(trusted) {
		t.Errorf("got %T, want the transport itself", got)
	}
	t.Setenv("SSL_CERT_DIR", t.TempDir())
	plain := &http.Transport{}
	if got := Authorities(plain, func(t *http.Transport) http.RoundTripper { return t }); got != http.RoundTripper(plain) {
		t.Errorf("with SSL_CERT_DIR got %T, want the transport itself", got)
	}
}
