package cloud

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Missing returns the error for a resource that others refer to and that does not exist.
func Missing(kind, name, state string) error {
	return diag.WithHint(fmt.Errorf("there is no %s %s", kind, name), "declare it before with %s, or correct the name",
		state)
}

// Failed wraps an error of AWS with what failed and for which resource, and adds a hint for common errors. It returns
// nil for nil.
func Failed(what, name string, err error) error {
	if err == nil {
		return nil
	}
	wrapped := fmt.Errorf("%s %s: %w", what, name, oneLine{err})
	if unreachable(err) {
		return diag.WithHint(wrapped, "look at the network, the region and --endpoint, and run it again")
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		return wrapped
	}
	switch code := api.ErrorCode(); {
	case strings.Contains(code, "AccessDenied") || strings.Contains(code, "Unauthorized"):
		return diag.WithHint(wrapped, "allow the account this action, or name another profile")
	case strings.Contains(code, "InvalidClientTokenId") || strings.Contains(code, "SignatureDoesNotMatch"),
		strings.Contains(code, "ExpiredToken"), strings.Contains(code, "AuthFailure"):
		return diag.WithHint(wrapped, "renew the credentials of the profile")
	}
	return wrapped
}

// oneLine shows an error of AWS on one line, as reports and terminals need it: some texts of AWS contain line breaks.
type oneLine struct{ error }

// Error implements error.
func (e oneLine) Error() string { return strings.Join(strings.Fields(e.error.Error()), " ") }

// Unwrap returns the error as AWS sent it.
func (e oneLine) Unwrap() error { return e.error }

// HasCode reports whether an error of AWS has one of these codes.
func HasCode(err error, codes ...string) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	for _, c := range codes {
		if api.ErrorCode() == c {
			return true
		}
	}
	return false
}
