package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/corpus-agent/corpus-agent/artifact/redirect"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// verdict is the meaning of a failure.
type verdict struct {
	kind  error
	again bool
	hint  string
}

// Fail returns the error of a request without a response, or whose response broke off.
func (c *Call) Fail(err error) error {
	if c.ctx.Err() != nil {
		return store.Stopped(c.ctx, c.Op, c.Object)
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without the URL, which Object replaces
	}
	return c.tell(network(err), err)
}

// tell makes the error that callers of a store get.
func (c *Call) tell(v verdict, cause error) error {
	err := &store.Error{Op: c.Op, Object: c.Object, Kind: v.kind, Cause: c.discreet(cause), Again: v.again,
		After: c.answer.after, Now: c.answer.clock}
	if v.hint == "" {
		return err
	}
	return topicOf(v.kind).Hint(err, "%s", c.redactor().Text(v.hint))
}

// topicOf returns the topic of hints about a kind of failure.
func topicOf(kind error) diag.Topic {
	switch {
	case errors.Is(kind, store.ErrCredentials), errors.Is(kind, store.ErrForbidden):
		return diag.Credentials
	case errors.Is(kind, store.ErrNoStore):
		return diag.StoreURL
	}
	return diag.Store
}

// Precondition returns the error for an object of another version than the requested one.
func (c *Call) Precondition() error {
	return c.tell(verdict{kind: store.ErrPrecondition}, nil)
}

// Gone returns the result of a Delete that failed with err: it is not a failure if the object does not exist.
func (c *Call) Gone(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// Credentials returns the error for missing credentials.
func (c *Call) Credentials(cause error, hint string) error {
	if c.ctx.Err() != nil {
		return store.Stopped(c.ctx, c.Op, c.Object)
	}
	return c.tell(verdict{kind: store.ErrCredentials, hint: hint}, cause)
}

// Unusable returns the error for a store that is not as its URL says, so that a retry is pointless.
func (c *Call) Unusable(cause error, hint string) error {
	return c.tell(verdict{kind: store.ErrUnreachable, hint: hint}, cause)
}

// Malformed returns the error for a response that contradicts itself or the request.
func (c *Call) Malformed(format string, args ...any) error {
	return c.tell(verdict{kind: store.ErrUnreachable,
		hint: diag.Store.Coded("something between here and the store, or the store itself, does not follow HTTP")},
		fmt.Errorf(format, args...))
}

func network(err error) verdict {
	v := verdict{kind: store.ErrUnreachable, again: true}
	var (
		dns       *net.DNSError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		verify    *tls.CertificateVerificationError
		wayward   redirect.Refused
		other     notListing
	)
	switch {
	case errors.As(err, &other), errors.As(err, &notObject{}):
		v.hint = diag.Store.Coded(
			"something between here and the store answers in its place, such as a proxy or the login page of a " +
				"network; or the store's URL names a server that is not S3")
	case errors.As(err, &dns):
		v.hint = diag.Store.Coded(
			fmt.Sprintf("check the name %s in the store's URL, and this host's resolver", dns.Name))
	case errors.Is(err, syscall.ECONNREFUSED):
		v.hint = diag.Store.Coded(
			"nothing listens there: check the store's host and port, and that the server runs")
	case errors.Is(err, http.ErrSchemeMismatch):
		v.again, v.hint = false, diag.StoreURL.Coded(
			"the server speaks plain HTTP on this port: ?tls=0 in a minio:// URL allows that, http:// "+
				"in an endpoint")
	case errors.As(err, &authority):
		v.again, v.hint = false, diag.Store.Coded(
			"if the server's certificate is from an authority of your own, install that authority on "+
				"this host or name its file in SSL_CERT_FILE")
	case errors.As(err, &host):
		v.again, v.hint = false, diag.StoreURL.Coded(
			"the certificate is for another name: check the host in the store's URL")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		v.again, v.hint = false, diag.Store.Coded(
			fmt.Sprintf("the certificate has expired, or this host's clock is wrong: it reads %s",
				time.Now().UTC().Format(time.RFC3339)))
	case errors.As(err, &verify):
		v.again = false
	case errors.As(err, &wayward):
		v.again, v.hint = false, diag.StoreURL.Coded("give the URL that the redirects lead to")
	}
	return v
}

// Refused returns the error for an unsuccessful response, by its S3 error code, which may be empty, or else by its HTTP
// status.
func (c *Call) Refused(code, message string) error {
	if c.ctx.Err() != nil {
		return store.Stopped(c.ctx, c.Op, c.Object)
	}
	v := c.byCode(code)
	if v.kind == nil {
		v = c.byStatus()
	}
	return c.tell(v, c.said(code, message))
}

// said quotes the server, without secrets and control characters.
func (c *Call) said(code, message string) error {
	words := []string{}
	if code != "" {
		words = append(words, code+":")
	}
	if message == "" {
		message = http.StatusText(c.answer.status)
	}
	words = append(words, message, fmt.Sprintf("(HTTP %d", c.answer.status))
	if c.answer.request != "" {
		words[len(words)-1] += ", request " + c.answer.request
	}
	text := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, c.redactor().Text(redact.URLs(strings.Join(words, " ")+")"))) // redact before cutting
	if len(text) > 400 {
		text = strings.ToValidUTF8(text[:400], "") + "..."
	}
	return errors.New(text)
}

// byStatus determines the meaning of the HTTP status alone.
func (c *Call) byStatus() verdict {
	switch s := c.answer.status; {
	case s == http.StatusNotFound || s == http.StatusGone:
		return verdict{kind: store.ErrNotFound}
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		return verdict{kind: store.ErrForbidden, hint: c.permission()}
	case s == http.StatusPreconditionFailed:
		return verdict{kind: store.ErrPrecondition}
	case s == http.StatusConflict:
		return verdict{kind: store.ErrThrottled, again: true}
	case s == http.StatusServiceUnavailable || s == http.StatusTooManyRequests:
		return verdict{kind: store.ErrThrottled, again: true, hint: throttled}
	case s == http.StatusRequestTimeout || s >= 500 && s != http.StatusNotImplemented:
		return verdict{kind: store.ErrUnreachable, again: true}
	case s == http.StatusNotModified && c.Op == store.OpGet:
		return verdict{kind: store.ErrUnchanged}
	case s >= 300 && s < 400:
		return c.elsewhere()
	}
	return verdict{kind: store.ErrUnreachable}
}

const throttled = "the store is overloaded, or too many hosts ask at once: a randomised delay of the timer spreads " +
	"them"
