package aws_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// oddValues are values that an argument may have by mistake, as YAML.
var oddValues = []string{"null", "''", "x", "0", "-1", "true", "[]", "[null]", "[[]]", "[x]", "[{}]", "[{x: null}]",
	"[{x: [x]}]", "{}", "{x: null}", "{x: x}", "{x: {}}", "{x: [{}]}"}

// TestOddValuesAreNoPanic gives each argument of each function values of other types. A plan may refuse them or take
// them, and must not panic.
func TestOddValuesAreNoPanic(t *testing.T) {
	i := newImitation(t, newNetworks(0), newSecurityGroups(0), newIAMRoles(0), newQueues(0), newTopics(0),
		newDynamoTables(0), newAlarms(), newBalancers(), newZones(0), newScaling(0), newTemplates(),
		newEncryptionKeys(), newTargetGroups(0), newMachines(0), newIAMMembers(0), newIAMAccount(0), newBuckets(0),
		newCaches(0), oneAccount{})
	tryOddValues(t, i.cloud())
}

func tryOddValues(t *testing.T, cloud *aws.Cloud) {
	bases := map[string]string{}
	for _, r := range resources() {
		bases[r.function] = r.base
	}
	for name, table := range aws.Tables(cloud) {
		for fun, of := range table {
			function := name + "." + fun
			arguments, _ := module.ArgumentsOf(of())
			for _, a := range arguments {
				if strings.Contains(" region key keyid profile ", " "+a.Name+" ") {
					continue
				}
				for _, odd := range oddValues {
					planOdd(t, of(), function, a.Name+": "+odd, bases[function])
				}
			}
		}
	}
}

// planOdd plans a resource with the arguments of base and another one.
func planOdd(t *testing.T, r module.Resource, function, odd, base string) {
	t.Helper()
	defer func() {
		if why := recover(); why != nil {
			t.Errorf("%s with %s panics: %v", function, odd, why)
		}
	}()
	all := value.NewMap("name", "odd")
	for _, text := range []string{base, "{" + odd + "}"} {
		doc, err := yaml.LoadString(text, function)
		if err != nil {
			t.Fatal(fmt.Errorf("%s: %w", text, err))
		}
		if m, ok := doc.Value.(*value.Map); ok {
			all.Update(m)
		}
	}
	if _, problems := module.Decode(r, module.Call{Function: function, Arguments: all}); len(problems) > 0 {
		return
	}
	if v, ok := r.(module.Validated); ok && v.Valid() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second/10) // resources that never appear
	defer cancel()
	if diff, err := r.Check(ctx, nil); err == nil && !diff.Empty() {
		_, _ = r.Apply(ctx, nil, diff)
	}
}
