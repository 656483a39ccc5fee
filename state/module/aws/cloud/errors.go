package cloud

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Missing returns the error for a resource that others refer to and that does not exist.
func Missing(kind, name, state string) error {
	return diag.Resource.Hint(&missingError{kind, name}, "declare it before with %s, or correct the name",
		state)
}

// missingError is the error for a resource that does not exist.
type missingError struct{ kind, name string }

// Error implements error.
func (e *missingError) Error() string { return "there is no " + e.kind + " " + e.name }

// IsMissing reports whether an error is one of Missing.
func IsMissing(err error) bool {
	var missing *missingError
	return errors.As(err, &missing)
}

// Failed wraps an error of AWS with what failed and for which resource, and adds a hint for common errors. It returns
// nil for nil.
func Failed(what, name string, err error) error {
	if err == nil {
		return nil
	}
	wrapped := fmt.Errorf("%s %s: %w", what, name, readable{err})
	if unreachable(err) {
		return diag.Store.Hint(wrapped, "look at the network, the region and --endpoint, and run it again")
	}
	var api smithy.APIError
	if !errors.As(err, &api) || diag.HintOf(err) != "" {
		return wrapped
	}
	switch code := api.ErrorCode(); {
	case strings.Contains(code, "AccessDenied") || strings.Contains(code, "Unauthorized"):
		return diag.Credentials.Hint(wrapped, "allow the account this action, or name another profile")
	case strings.Contains(code, "InvalidClientTokenId") || strings.Contains(code, "SignatureDoesNotMatch"),
		strings.Contains(code, "ExpiredToken"), strings.Contains(code, "AuthFailure"):
		return diag.Credentials.Hint(wrapped, "renew the credentials of the profile")
	}
	return wrapped
}

// readable shows an error of AWS as service: operation: code: message, on one line. The SDK adds the ID of the request
// and the layers of its own code, and some texts of AWS contain line breaks.
type readable struct{ error }

// Error implements error.
func (e readable) Error() string {
	text := e.error.Error()
	for _, pair := range shorter(e.error) {
		text = strings.ReplaceAll(text, pair[0], pair[1])
	}
	return strings.Join(strings.Fields(text), " ")
}

// Unwrap returns the error as AWS sent it.
func (e readable) Unwrap() error { return e.error }

// shorter returns the texts of the SDK in an error, each with the text to show instead.
func shorter(err error) (pairs [][2]string) {
	switch e := err.(type) { //nolint:errorlint // each layer is looked at
	case readable:
		return nil // it is short already
	case *smithy.OperationError:
		return [][2]string{{e.Error(), joined(e.ServiceID, e.OperationName, cause(e.Err))}}
	case smithy.APIError:
		return [][2]string{{e.Error(), cause(e)}}
	case interface{ Unwrap() error }:
		return shorter(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			pairs = append(pairs, shorter(one)...)
		}
	}
	return pairs
}

// cause returns the code and the message of an error of AWS, or the text of another error without the layers of the
// SDK around it.
func cause(err error) string {
	attempts, tries := "", (*retry.MaxAttemptsError)(nil)
	if errors.As(err, &tries) {
		attempts = fmt.Sprintf(" (after %d attempts)", tries.Attempt)
	}
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() != "UnknownError" {
		return joined(api.ErrorCode(), api.ErrorMessage()) + attempts
	}
	for _, stop := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, stop) {
			return stop.Error()
		}
	}
	var answer interface{ HTTPStatusCode() int }
	if errors.As(err, &answer) && answer.HTTPStatusCode() >= 300 {
		return fmt.Sprintf("the answer has the HTTP status %d", answer.HTTPStatusCode()) + attempts
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		switch inner.(type) { //nolint:errorlint // each layer is looked at
		case *retry.MaxAttemptsError, *smithyhttp.RequestSendError, interface{ HTTPStatusCode() int }:
		default:
			return inner.Error() + attempts
		}
	}
	return err.Error() + attempts
}

// joined returns the parts that are not empty, with colons between them.
func joined(parts ...string) string {
	var all []string
	for _, part := range parts {
		if part != "" {
			all = append(all, part)
		}
	}
	return strings.Join(all, ": ")
}

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
