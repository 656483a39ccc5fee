package cloud

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/aws/smithy-go/middleware"
)

// sent has the requests of a step of a plan that changed something. The report of a step that fails lists them, so that
// a person knows what exists.
type sent struct {
	mu  sync.Mutex
	all []string
}

type sentKey struct{}

// noteSent adds middleware that notes the requests of a step that changed something.
func noteSent(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("note what is sent", func(ctx context.Context,
		in middleware.InitializeInput,
		next middleware.InitializeHandler) (out middleware.InitializeOutput, m middleware.Metadata, err error) {
		out, m, err = next.HandleInitialize(ctx, in)
		operation := middleware.GetOperationName(ctx)
		if s, ok := ctx.Value(sentKey{}).(*sent); ok && err == nil && !readsOnly(operation) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.all = append(s.all, strings.TrimSpace(operation+" "+madeID(reflect.ValueOf(out.Result))))
		}
		return out, m, err
	}), middleware.Before)
}

// readsOnly reports whether an operation only reads.
func readsOnly(operation string) bool {
	return slices.ContainsFunc([]string{"Describe", "Get", "List", "Head", "Lookup", "Assume"},
		func(begin string) bool { return strings.HasPrefix(operation, begin) })
}

// madeID returns the ID or ARN of what a request made, or "" if the answer names none.
func madeID(v reflect.Value) string {
	for range 4 { // such as CreateVpcOutput.Vpc.VpcId
		for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct {
			return ""
		}
		inner := reflect.Value{}
		for i := range v.NumField() {
			name, field := v.Type().Field(i).Name, v.Field(i)
			if field.Kind() != reflect.Pointer || field.IsNil() {
				continue
			}
			if field.Elem().Kind() == reflect.Struct && !inner.IsValid() && name != "ResultMetadata" {
				inner = field
			}
			for _, end := range []string{"Id", "Arn", "Url", "ID"} {
				if strings.HasSuffix(name, end) && field.Elem().Kind() == reflect.String && name != "OwnerId" &&
					name != "AccessKeyId" {
					return field.Elem().String()
				}
			}
		}
		if !inner.IsValid() {
			return ""
		}
		v = inner
	}
	return ""
}
