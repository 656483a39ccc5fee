package query

import "testing"

func TestErrorsInBothXMLForms(t *testing.T) {
	for text, want := range map[string]string{
		`<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>`: "AccessDenied: no",
		`<Response><Errors><Error><Code>AuthFailure</Code><Message>not you</Message></Error></Errors></Response>`:         "AuthFailure: not you",
		`<html>Bad Gateway</html>`: "it answered with status 400",
		`not XML`:                  "it answered with status 400",
	} {
		if got := faultOf(400, []byte(text)).Error(); got != want {
			t.Errorf("%s reads %q, want %q", text, got, want)
		}
	}
}
