package cloud

import (
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Only returns the only resource with a name, or nil if there is none. Several are an error that names their IDs: AWS
// allows them, and only a person knows which of them is meant. instead says how to select one by its ID, or is empty if
// nothing does.
func Only[T any](kind, name string, all []T, id func(*T) *string, instead string) (*T, error) {
	switch len(all) {
	case 0:
		return nil, nil
	case 1:
		return &all[0], nil
	}
	var ids []string
	for i := range all {
		if one := id(&all[i]); one != nil {
			ids = append(ids, *one)
		}
	}
	hint := "delete the one that is not meant by its ID, with AWS's tools, or give it another name"
	if instead != "" {
		hint = instead + ", or " + hint
	}
	return nil, diag.Resource.Hint(fmt.Errorf("%s are named %s: %s", diag.Count(len(all), kind), name,
		strings.Join(ids, ", ")),
		"%s", hint)
}
