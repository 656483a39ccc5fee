package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// TestErrorsOfAWSAreReadable checks that an error of AWS is shown as service: operation: code: message, on one line,
// and keeps its code. The SDK's own text has the ID of the request and the layers of its code.
func TestErrorsOfAWSAreReadable(t *testing.T) {
	invalid := &smithy.GenericAPIError{Code: "ValidationError",
		Message: "1 validation error:\n\n\tvalue 'x' at 'y'\r\n  is not valid\n"}
	answer := func(status int, err error) error {
		return &awshttp.ResponseError{RequestID: "4f0a-77", ResponseError: &smithyhttp.ResponseError{Err: err,
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}}}
	}
	operation := func(err error) error {
		return &smithy.OperationError{ServiceID: "EC2", OperationName: "RunInstances", Err: err}
	}
	const shown = "ValidationError: 1 validation error: value 'x' at 'y' is not valid"
	for _, c := range []struct {
		err  error
		want string
	}{
		{invalid, shown},
		{operation(answer(400, invalid)), "EC2: RunInstances: " + shown},
		{operation(&retry.MaxAttemptsError{Attempt: 10, Err: answer(503, &smithy.GenericAPIError{Code: "Throttling"})}),
			"EC2: RunInstances: Throttling (after 10 attempts)"},
		{operation(answer(502, &smithy.GenericAPIError{Code: "UnknownError", Message: "UnknownError"})),
			"EC2: RunInstances: the answer has the HTTP status 502"},
		{operation(&smithyhttp.RequestSendError{Err: errors.New("no route")}), "EC2: RunInstances: no route"},
		{operation(&smithy.CanceledError{Err: context.Canceled}), "EC2: RunInstances: context canceled"},
		{fmt.Errorf("first: %w", diag.Internal.Hint(errors.Join(operation(invalid)), "h")),
			"first: EC2: RunInstances: " + shown},
		{Failed("making instance", "i", operation(answer(400, invalid))),
			"making instance i: EC2: RunInstances: " + shown},
	} {
		err := Failed("making load balancer", "elb", c.err)
		if want := "making load balancer elb: " + c.want; err.Error() != want {
			t.Errorf("the error is %q, want %q", err, want)
		}
	}
	err := Failed("making load balancer", "elb", invalid)
	if !HasCode(err, "ValidationError") || strings.Contains(errors.Unwrap(err).Error(), "\n") {
		t.Errorf("the code of %q is not found, or the wrapped error has several lines", err)
	}
	denied := &smithy.GenericAPIError{Code: "AccessDenied"}
	if hint := diag.HintOf(Failed("a", "b", diag.Internal.Hint(denied, "its own"))); hint != "its own [C079]" {
		t.Errorf("the hint of a request is %q", hint)
	}
}
