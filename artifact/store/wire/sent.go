package wire

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Servers quote requests in error messages: headers with a session token, a URL with its signature, an account with its
// password. So each call remembers what it sent and its secrets, and no error of the call shows them.

// Hide redacts secrets, such as those that sign requests, in the call's errors.
func (c *Call) Hide(secrets ...string) { c.hidden = append(c.hidden, secrets...) }

// Hide is Call.Hide for the call of a context, if it has one.
func Hide(ctx context.Context, secrets ...string) {
	if c, ok := ctx.Value(callKey{}).(*Call); ok {
		c.Hide(secrets...)
	}
}

// send remembers a request of the call. A redirected call makes several.
func (c *Call) send(req *http.Request) { c.sent = append(c.sent, req) }

// discreet redacts the secrets of the call's requests in an error and its hint.
func (c *Call) discreet(err error) error {
	if err == nil {
		return nil
	}
	return c.redactor().Error(withoutLogins(err))
}

func (c *Call) redactor() *redact.Redactor {
	known := &redact.Redactor{}
	known.Add(c.hidden...)
	for _, req := range c.sent {
		known.Add(secretsOf(req)...)
	}
	return known
}

// withoutLogins removes credentials from URLs in an error. An error without any is returned unchanged.
func withoutLogins(err error) error {
	text, hint := err.Error(), diag.HintOf(err)
	shown, shownHint := redact.URLs(text), redact.URLs(hint)
	if shown == text && shownHint == hint {
		return err
	}
	if shownHint == "" {
		return errors.New(shown)
	}
	return diag.Store.Hint(errors.New(shown), "%s", shownHint)
}

// secretsOf returns the parts of a request that would allow others to make a similar one.
func secretsOf(req *http.Request) (all []string) {
	for _, name := range []string{"Authorization", "Proxy-Authorization", "X-Amz-Security-Token", "Cookie"} {
		for _, value := range req.Header.Values(name) {
			_, credentials, _ := strings.Cut(value, " ")
			_, signature, _ := strings.Cut(value, "Signature=")
			all = append(all, value, credentials, signature)
		}
	}
	if _, password, ok := req.BasicAuth(); ok {
		all = append(all, password)
	}
	if req.URL.User != nil {
		password, _ := req.URL.User.Password()
		all = append(all, req.URL.User.String(), password)
	}
	for name, values := range req.URL.Query() {
		for _, value := range values {
			if strings.Contains(redact.URLs("x://x/?"+name+"=x"), redact.Mark) {
				all = append(all, value)
			}
		}
	}
	return all
}
