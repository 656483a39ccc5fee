package wire

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Servers quote requests in what they say of a failure: headers with a session's token, a URL with its signature, an
// account with its password. So each call knows what it sent and with which secrets, and no error of it shows them.

// Hide keeps secrets, such as those that sign requests, out of the call's errors.
func (c *Call) Hide(secrets ...string) { c.hidden = append(c.hidden, secrets...) }

// Hide is Call.Hide for the call that a context is of, if it is of one.
func Hide(ctx context.Context, secrets ...string) {
	if c, ok := ctx.Value(callKey{}).(*Call); ok {
		c.Hide(secrets...)
	}
}

// send remembers a request of the call. A call that is redirected makes several.
func (c *Call) send(req *http.Request) { c.sent = append(c.sent, req) }

// discreet returns an error without the secrets of the call's requests, in its text and its hint.
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

// withoutLogins is an error whose URLs show no credentials. One that shows none stays as it is, with what it wraps.
func withoutLogins(err error) error {
	text, hint := err.Error(), diag.HintOf(err)
	shown, shownHint := redact.URLs(text), redact.URLs(hint)
	if shown == text && shownHint == hint {
		return err
	}
	if shownHint == "" {
		return errors.New(shown)
	}
	return diag.WithHint(errors.New(shown), "%s", shownHint)
}

// secretsOf are the parts of a request that let others make one like it.
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
