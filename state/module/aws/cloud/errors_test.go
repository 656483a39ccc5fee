package cloud

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/smithy-go"
)

// TestErrorsOfAWSAreOneLine checks that an error of AWS with line breaks becomes one line and keeps its code.
func TestErrorsOfAWSAreOneLine(t *testing.T) {
	err := Failed("making load balancer", "elb", &smithy.GenericAPIError{Code: "ValidationError",
		Message: "1 validation error:\n\n\tvalue 'x' at 'y'\r\n  is not valid\n"})
	want := "making load balancer elb: api error ValidationError: 1 validation error: value 'x' at 'y' is not valid"
	if err.Error() != want {
		t.Errorf("the error is %q, want %q", err, want)
	}
	if !HasCode(err, "ValidationError") || strings.Contains(errors.Unwrap(err).Error(), "\n") {
		t.Errorf("the code of %q is not found, or the wrapped error has several lines", err)
	}
}
