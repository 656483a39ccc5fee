package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"sync"
	"sync/atomic"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Authorities returns a transport that verifies servers with the authorities of the system. To verify the first server,
// the standard library reads the file in which a distribution keeps all of them, and then each file beside it, which
// has one of them again: three times as much as needed, in each run of the agent. So this transport takes the file
// alone, and all files as soon as the file alone does not verify a server. wrap is what makes a transport of the
// client of t. If t has authorities of its own, Authorities returns wrap(t).
func Authorities(t *http.Transport, wrap func(*http.Transport) http.RoundTripper) http.RoundTripper {
	if t.TLSClientConfig != nil && t.TLSClientConfig.RootCAs != nil || namedByUser() {
		return wrap(t)
	}
	bundled := sync.OnceValue(func() http.RoundTripper {
		pool := bundle()
		if pool == nil {
			return nil
		}
		other := t.Clone()
		if other.TLSClientConfig == nil {
			other.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		other.TLSClientConfig.RootCAs = pool
		return wrap(other)
	})
	return &authorities{bundled: bundled, all: wrap(t)}
}

type authorities struct {
	bundled func() http.RoundTripper // nil if the system has no bundle
	all     http.RoundTripper
	needed  atomic.Bool // the bundle did not verify a server
}

// RoundTrip performs a request. A request whose body was read cannot be sent again: it fails, and a later one uses all
// authorities.
func (a *authorities) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" || a.needed.Load() {
		return a.all.RoundTrip(req)
	}
	bundled := a.bundled()
	if bundled == nil {
		return a.all.RoundTrip(req)
	}
	resp, err := bundled.RoundTrip(req)
	var unverified *tls.CertificateVerificationError
	if !errors.As(err, &unverified) {
		return resp, err
	}
	a.needed.Store(true)
	if req.Body != nil && req.Body != http.NoBody {
		if req.GetBody == nil {
			return nil, err
		}
		body, bodyErr := req.GetBody()
		if bodyErr != nil {
			return nil, errors.Join(err, bodyErr)
		}
		req = req.Clone(req.Context())
		req.Body = body
	}
	return a.all.RoundTrip(req)
}

// namedByUser reports whether the environment names other files of authorities.
func namedByUser() bool { return os.Getenv("SSL_CERT_FILE") != "" || os.Getenv("SSL_CERT_DIR") != "" }

// bundle returns the authorities of the file that has all of a distribution, the first that exists of those that the
// standard library reads, or nil.
func bundle() *x509.CertPool {
	for _, file := range []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/ssl/ca-bundle.pem", "/etc/pki/tls/cacert.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
		"/etc/ssl/cert.pem"} {
		data, err := walk.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil // the standard library, which reads it then, says what is wrong
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(data) {
			return nil
		}
		return pool
	}
	return nil
}
