package cloud

import (
	"context"
	"encoding/base64"
	"errors"
	"reflect"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/processcreds"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// secretFields are the fields of requests whose values are secrets, wherever SLS files have them from. The value is
// true for those that are secrets of the run. User data is a secret only in errors of its request: its lines, such as
// those of a common script, may be part of any text.
var secretFields = map[string]bool{"Password": true, "PrivateKey": true, "AuthToken": true, "SecretAccessKey": true,
	"UserData": false}

// keepSecrets adds middleware that redacts the secrets of a request in its errors, since AWS repeats values that it
// refuses.
func (c *Cloud) keepSecrets(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("keep secrets", func(ctx context.Context,
		in middleware.InitializeInput,
		next middleware.InitializeHandler) (out middleware.InitializeOutput, m middleware.Metadata, err error) {
		own := &redact.Redactor{}
		c.secretsOf(reflect.ValueOf(in.Parameters), own)
		out, m, err = next.HandleInitialize(ctx, in)
		return out, m, withoutSecrets(err, own)
	}), middleware.Before)
}

// secretsOf adds the secrets of a request to those of the run, and to those of the request.
func (c *Cloud) secretsOf(v reflect.Value, own *redact.Redactor) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		c.secretsOf(v.Elem(), own)
	case reflect.Slice:
		for i := range v.Len() {
			c.secretsOf(v.Index(i), own)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			common, secret := secretFields[name]
			if !secret {
				c.secretsOf(v.Field(i), own)
				continue
			}
			for _, text := range textsIn(v.Field(i)) {
				own.Add(text)
				if common {
					c.addSecret(text)
				}
				if plain, err := base64.StdEncoding.DecodeString(text); err == nil && name == "UserData" {
					own.Add(string(plain))
				}
			}
		}
	}
}

// textsIn returns the texts in a field of a request.
func textsIn(v reflect.Value) (all []string) {
	switch v.Kind() {
	case reflect.String:
		return []string{v.String()}
	case reflect.Pointer, reflect.Interface:
		return textsIn(v.Elem())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return []string{string(v.Bytes())}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			all = append(all, textsIn(v.Field(i))...)
		}
	}
	return all
}

// addSecret adds a secret to those of the run.
func (c *Cloud) addSecret(text string) {
	if c.Secret != nil && text != "" {
		c.Secret(text)
	}
}

// withoutSecrets returns an error without secrets. An error that has none stays the same.
func withoutSecrets(err error, secrets *redact.Redactor) error {
	if err == nil || secrets.Empty() {
		return err
	}
	var api smithy.APIError
	if errors.As(err, &api) && (secrets.In(api.ErrorMessage()) || secrets.In(err.Error())) {
		return &smithy.GenericAPIError{Code: api.ErrorCode(), Message: secrets.Text(api.ErrorMessage()),
			Fault: api.ErrorFault()}
	}
	if text := err.Error(); secrets.In(text) {
		return errors.New(secrets.Text(text))
	}
	return err
}

// credentialsOf hides what the SDK repeats of its input in errors of credentials.
type credentialsOf struct{ sdk.CredentialsProvider }

// Retrieve implements aws.CredentialsProvider.
func (p credentialsOf) Retrieve(ctx context.Context) (sdk.Credentials, error) {
	keys, err := p.CredentialsProvider.Retrieve(ctx)
	return keys, withoutOutput(err)
}

// withoutOutput returns an error of credentials without the output of a credential_process, which has the secret key:
// the SDK repeats output that it cannot read.
func withoutOutput(err error) error {
	process := (*processcreds.ProviderError)(nil)
	if !errors.As(err, &process) {
		return err
	}
	why := process.Err.Error()
	if strings.HasPrefix(why, "parse failed") {
		return diag.Credentials.Hint(errors.New("the output of credential_process is not the JSON that AWS's tools read"),
			"it has to print an object with Version, AccessKeyId and SecretAccessKey, and nothing else")
	}
	return errors.New("credential_process: " + why)
}
