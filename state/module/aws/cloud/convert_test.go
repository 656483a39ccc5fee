package cloud

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestErrorsOfArgumentsHaveNoTypesOfGo gives fields of AWS's API values of other types.
func TestErrorsOfArgumentsHaveNoTypesOfGo(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{value.NewMap("Expiration", value.NewMap("Days", "many")),
			"A: Expiration.Days is a text, and a number was expected"},
		{value.NewMap("Prefix", value.NewList("a")), "A: Prefix is a list, and a text was expected"},
		{value.NewMap("Expiration", true), "A: Expiration is a boolean, and a mapping was expected"},
		{"x", "A: it is a text, and a mapping was expected"},
		{value.NewMap("Prefx", "a"), `A: unknown field "Prefx"`},
	} {
		if err := IntoSDK("A", c.v, &types.LifecycleRule{}); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", value.Repr(c.v), err, c.want)
		}
	}
}
