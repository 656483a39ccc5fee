package cloud

import (
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Policy is an argument that is a policy of AWS. SLS files have it as a mapping or as JSON text. It is nil if the
// argument is not given.
type Policy struct{ *value.Map }

// UnmarshalSLS implements module.Unmarshaler.
func (p *Policy) UnmarshalSLS(v any) (err error) {
	p.Map, err = policyOf(v)
	return err
}

// Policies is an argument with policies by name. It is nil if the argument is not given.
type Policies struct{ *value.Map }

// UnmarshalSLS implements module.Unmarshaler.
func (p *Policies) UnmarshalSLS(v any) (err error) {
	p.Map, err = PoliciesOf(v)
	return err
}

// PoliciesOf returns policies by name, each as a mapping: SLS files and the pillar have policies as mappings or as JSON
// text. It returns nil for None.
func PoliciesOf(v any) (*value.Map, error) {
	if v == nil {
		return nil, nil
	}
	given := MapOf(v)
	if given == nil {
		return nil, fmt.Errorf("a mapping of names to policies was expected, not a %s", value.TypeName(v))
	}
	all := value.NewMap()
	for name, item := range given.All() {
		one, err := policyOf(item)
		if err != nil {
			return nil, fmt.Errorf("policy %s: %w", value.Str(name), err)
		}
		if one == nil {
			return nil, fmt.Errorf("policy %s is empty", value.Str(name))
		}
		all.Set(value.Str(name), one)
	}
	return all, nil
}

// policyOf returns a policy as a mapping, or nil for None and an empty text.
func policyOf(v any) (*value.Map, error) {
	if text, ok := v.(string); ok {
		if strings.TrimSpace(text) == "" {
			return nil, nil
		}
		parsed, err := value.FromJSON([]byte(text))
		if err != nil {
			return nil, diag.Amazon.Hint(fmt.Errorf("it is a text that is not JSON: %w", err),
				"write the policy as a mapping, or as JSON")
		}
		v = parsed
	}
	if v == nil {
		return nil, nil
	}
	if m := MapOf(v); m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("a mapping or JSON was expected, not a %s", value.TypeName(v))
}

// AttributeText returns the value of an attribute as the text that AWS takes. A mapping or list, such as a policy,
// becomes JSON.
func AttributeText(v any) (string, error) {
	switch v := v.(type) {
	case *value.Map, *value.List:
		return value.Dumps(v, value.JSONOptions{})
	case bool:
		if v {
			return "true", nil
		}
		return "false", nil
	case nil:
		return "", nil
	}
	return value.Str(v), nil
}

// SameText reports whether two texts mean the same. Objects in JSON are compared as policies, and other texts without
// regard to case.
func SameText(a, b string) bool {
	if a == b {
		return true
	}
	if !strings.HasPrefix(strings.TrimSpace(a), "{") {
		return strings.EqualFold(a, b)
	}
	x, err := value.FromJSON([]byte(a))
	y, other := value.FromJSON([]byte(b))
	return err == nil && other == nil && SamePolicy(x, y)
}

// SamePolicy reports whether two policies mean the same: AWS writes a list of one text as that text, and lists of
// actions and resources have no order.
func SamePolicy(a, b any) bool { return value.Equal(plainPolicy(a), plainPolicy(b)) }

func plainPolicy(v any) any {
	switch v := v.(type) {
	case *value.Map:
		m := value.NewMap()
		for key, item := range v.All() {
			m.Set(value.Str(key), plainPolicy(item))
		}
		return m
	case *value.List:
		if len(v.Items) == 1 {
			return plainPolicy(v.Items[0])
		}
		all, words := value.NewList(), true
		for _, item := range v.Items {
			all.Append(plainPolicy(item))
			_, is := item.(string)
			words = words && is
		}
		if words {
			return Sorted(Texts(v))
		}
		return all
	case bool: // AWS returns the values of conditions as text
		if v {
			return "true"
		}
		return "false"
	case int, float64:
		return value.Str(v)
	}
	return v
}
