// Package wire is the common part of the stores that use HTTP: connecting, interpreting responses, and describing
// failures.
//
// Three clients (two for S3, one for web servers) report the same failures in three ways. Here each operation is a
// Call, which observes responses at the lowest level, below the client, and so has information that clients drop: how
// long the server asks to wait, its clock, the region of a bucket. Errors are made by Call, so that they read alike and
// are retried alike for all clients.
//
// A server may be hostile. The bodies of errors and listings, which clients read into memory, are limited here; the
// bodies of objects must have the announced length and place in the object.
package wire

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/redirect"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// Call is one operation of a store, with the information from the server's responses so far.
type Call struct {
	Op     store.Op
	Key    string
	Object string // name of the object in messages
	ctx    context.Context
	answer answer
	sent   []*http.Request // as the client made them
	hidden []string        // secrets that are not in requests
}

// answer is the information from the header of the last response.
type answer struct {
	status  int
	region  string        // the bucket's region, if the server sends it
	request string        // the server's ID of the request, for its operators' logs
	after   time.Duration // how long to wait
	clock   time.Time     // the server's clock; zero if unknown
}

type callKey struct{}

// Begin starts a call. The returned context is for the client's request.
func Begin(ctx context.Context, op store.Op, key, object string) (context.Context, *Call) {
	c := &Call{Op: op, Key: key, Object: object}
	ctx = context.WithValue(ctx, callKey{}, c)
	c.ctx = ctx
	return ctx, c
}

// Status returns the HTTP status of the last response, 0 if there was none.
func (c *Call) Status() int { return c.answer.status }

// Tune configures a transport for transferring artifacts: it notices a dead server quickly, decompresses nothing by
// itself, and has buffers for large bodies.
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

// sendBuffer limits the size of the kernel's send buffer, so that progress is visible on a slow line.
const sendBuffer = 512 << 10

func dial(ctx context.Context, kind, address string) (net.Conn, error) {
	conn, err := redirect.Dial(net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second})(ctx, kind, address)
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // the system's default works too
	}
	return conn, err
}

// NewTransport returns a tuned transport that reports to calls. Proxies are taken from the environment.
func NewTransport() http.RoundTripper {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, ExpectContinueTimeout: time.Second}
	Tune(t)
	return Listen(Authorities(t, func(t *http.Transport) http.RoundTripper { return redirect.Guard(t) }))
}

// NewClient returns a client for URLs that people configure. It follows a few redirects, none from https to http, and,
// unless private is set, none from a public address to a private one, which requires a transport made by
// NewTransport.
func NewClient(transport http.RoundTripper, private bool) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: redirect.Follow(private)}
}

// Listen returns a transport that passes responses of next to their calls.
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
		c.answer = answerOf(resp)
	}
	bound(req, resp)
	if err := checkListing(req, resp); err != nil {
		_ = resp.Body.Close() // it is not read
		return nil, err
	}
	return resp, nil
}

func answerOf(resp *http.Response) answer {
	a := answer{
		status:  resp.StatusCode,
		region:  resp.Header.Get("X-Amz-Bucket-Region"),
		request: resp.Header.Get("X-Amz-Request-Id"),
	}
	if resp.Header.Get("Age") == "" { // otherwise the date is that of a cache
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

// bound limits the bodies that clients read into memory.
func bound(req *http.Request, resp *http.Response) {
	limit := int64(0)
	switch {
	case resp.StatusCode >= 300:
		limit = errorLimit
	case lists(req):
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
