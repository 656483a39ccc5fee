// Package wire is what the stores that speak HTTP share: one way to connect, one reading of what
// comes back, and one wording of what went wrong.
//
// Three clients (two for S3, one for web servers) tell of the same troubles in three ways. Here
// each operation is a Call, which listens to the answer at the lowest level, below the client, and
// so knows things that clients forget: how long the server asks to wait, its clock, the region
// where a bucket really is. Errors are made by Call, so that they read and are retried alike
// whatever the client.
//
// A server may be hostile. Bodies of errors and listings, which clients read into memory whole,
// are cut here; bodies of objects must have the length and the place in the object that was agreed.
package wire

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/redirect"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// Call is one operation of a store, and what is known of the server's answer so far.
type Call struct {
	Op     store.Op
	Key    string
	Object string // what messages call the object
	ctx    context.Context
	answer answer
	sent   []*http.Request // as the client made them
	hidden []string        // secrets besides those in requests
}

// answer is what the last response's head said.
type answer struct {
	status  int
	region  string        // where the bucket is, when the server says so
	request string        // the server's name for the request, for its operators' logs
	after   time.Duration // how long to wait
	clock   time.Time     // the server's clock; zero when unknown
}

type callKey struct{}

// Begin starts a call. The context it returns is for the client's request.
func Begin(ctx context.Context, op store.Op, key, object string) (context.Context, *Call) {
	c := &Call{Op: op, Key: key, Object: object}
	ctx = context.WithValue(ctx, callKey{}, c)
	c.ctx = ctx
	return ctx, c
}

// Status is the HTTP status of the last answer, 0 when there was none.
func (c *Call) Status() int { return c.answer.status }

// Tune sets a transport for moving artifacts: quick to notice a dead server, nothing decompressed
// behind our back, buffers that suit large bodies.
func Tune(t *http.Transport) {
	t.DialContext = dial
	t.TLSHandshakeTimeout = 10 * time.Second
	t.IdleConnTimeout = time.Minute
	t.MaxIdleConnsPerHost = 16
	t.MaxResponseHeaderBytes = 64 << 10
	t.ReadBufferSize = 64 << 10
	t.WriteBufferSize = 64 << 10
	t.DisableCompression = true
}

// sendBuffer bounds what the kernel holds of an upload that the server does not have yet, so that a slow
// line shows how it moves.
const sendBuffer = 512 << 10

func dial(ctx context.Context, kind, address string) (net.Conn, error) {
	conn, err := redirect.Dial(net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second})(ctx, kind, address)
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // the system's own size does too
	}
	return conn, err
}

// NewTransport is a tuned transport that listens for calls. Proxies are taken from the environment.
func NewTransport() http.RoundTripper {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, ExpectContinueTimeout: time.Second}
	Tune(t)
	return Listen(redirect.Guard(t))
}

// NewClient is a client for URLs that people give. It follows a few redirects, none that leads from https to http,
// and, unless private ones are allowed, none that leads from a public address to another. That takes a transport that
// NewTransport made.
func NewClient(transport http.RoundTripper, private bool) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: redirect.Follow(private)}
}

// Listen lets calls hear the answers that come through next.
func Listen(next http.RoundTripper) http.RoundTripper { return listener{next} }

type listener struct{ next http.RoundTripper }

func (l listener) RoundTrip(req *http.Request) (*http.Response, error) {
	c, called := req.Context().Value(callKey{}).(*Call)
	if called {
		c.send(req)
	}
	resp, err := l.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if called {
		c.answer = heard(resp)
	}
	bound(req, resp)
	return resp, nil
}

func heard(resp *http.Response) answer {
	a := answer{
		status:  resp.StatusCode,
		region:  resp.Header.Get("X-Amz-Bucket-Region"),
		request: resp.Header.Get("X-Amz-Request-Id"),
	}
	if resp.Header.Get("Age") == "" { // else the date is that of a cache's copy
		a.clock, _ = http.ParseTime(resp.Header.Get("Date"))
	}
	after := resp.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(after); err == nil && seconds >= 0 {
		a.after = min(time.Duration(seconds), 24*3600) * time.Second
	} else if at, err := http.ParseTime(after); err == nil {
		a.after = max(time.Until(at), 0)
	}
	return a
}

const (
	errorLimit   = 64 << 10 // bytes of a body that only explains a failure
	listingLimit = 16 << 20 // bytes of one page of a listing: 1,000 of the longest keys fit
)

// bound cuts the bodies that clients read into memory whole.
func bound(req *http.Request, resp *http.Response) {
	limit := int64(0)
	switch {
	case resp.StatusCode >= 300:
		limit = errorLimit
	case strings.Contains(req.URL.RawQuery, "list-type="):
		limit = listingLimit
	default:
		return
	}
	resp.Body = cut{io.LimitReader(resp.Body, limit), resp.Body}
}

type cut struct {
	io.Reader
	io.Closer
}
