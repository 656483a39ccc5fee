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
			id := madeID(strings.TrimPrefix(operation, "Create"), reflect.ValueOf(out.Result))
			s.all = append(s.all, strings.TrimSpace(operation+" "+id))
		}
		return out, m, err
	}), middleware.Before)
}

// readsOnly reports whether an operation only reads.
func readsOnly(operation string) bool {
	return slices.ContainsFunc([]string{"Describe", "Get", "List", "Head", "Lookup", "Assume"},
		func(begin string) bool { return strings.HasPrefix(operation, begin) })
}

// madeID returns the ID or ARN of what a request made, or "" if the answer names none. noun is what it made, such as
// Vpc: its ID comes before those of other resources that the answer names, such as Vpc.DhcpOptionsId.
func madeID(noun string, v reflect.Value) string {
	for range 4 { // such as CreateVpcOutput.Vpc.VpcId
		for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct {
			return ""
		}
		if all := v.FieldByName("Instances"); all.IsValid() && all.Kind() == reflect.Slice && all.Len() > 0 {
			noun, v = "Instance", all.Index(0)
			continue
		}
		if made := v.FieldByName(noun); made.IsValid() && made.Kind() == reflect.Pointer && !made.IsNil() &&
			made.Elem().Kind() == reflect.Struct {
			v = made
			continue
		}
		if id := textOf(v.FieldByName(noun + "Id")); id != "" {
			return id
		}
		id, inner := anyID(v)
		if id != "" || !inner.IsValid() {
			return id
		}
		v = inner
	}
	return ""
}

// textOf returns the text to which a field points, or "".
func textOf(field reflect.Value) string {
	if !field.IsValid() || field.Kind() != reflect.Pointer || field.IsNil() || field.Elem().Kind() != reflect.String {
		return ""
	}
	return field.Elem().String()
}

// anyID returns the first field of an answer that has the name of an ID, and the first one with fields of its own.
func anyID(v reflect.Value) (id string, inner reflect.Value) {
	for i := range v.NumField() {
		name, field := v.Type().Field(i).Name, v.Field(i)
		if field.Kind() != reflect.Pointer || field.IsNil() {
			continue
		}
		if field.Elem().Kind() == reflect.Struct && !inner.IsValid() && name != "ResultMetadata" {
			inner = field
		}
		for _, end := range []string{"Id", "Arn", "Url", "ID"} {
			if strings.HasSuffix(name, end) && name != "OwnerId" && name != "AccessKeyId" && textOf(field) != "" {
				return textOf(field), inner
			}
		}
	}
	return "", inner
}
