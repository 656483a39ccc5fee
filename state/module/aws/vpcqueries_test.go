package aws_test

import (
	"context"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module/aws"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// TestVPCsAreFoundByEachProperty checks that functions that find VPCs match each given property, not only the name.
func TestVPCsAreFoundByEachProperty(t *testing.T) {
	i := newImitation(t, newNetworks(0))
	runState(t, i.cloud(), "boto_vpc.present", "{name: one, cidr_block: 10.1.0.0/16, tags: {env: a}}", false)
	runState(t, i.cloud(), "boto_vpc.present", "{name: two, cidr_block: 10.2.0.0/16, tags: {env: b}}", false)
	table := aws.Reading(i.cloud())
	for _, c := range []struct {
		arguments string
		found     bool
	}{
		{"{name: one}", true}, {"{cidr: 10.1.0.0/16}", true}, {"{tags: {env: a}}", true}, {"{tags: {env: c}}", false},
		{"{name: one, cidr: 10.2.0.0/16}", false}, {"{name: one, tags: {env: b}}", false}, {"{name: none}", false},
		{"{name: one, cidr: 10.1.0.0/16, tags: {env: a, Name: one}}", true},
	} {
		doc, err := yaml.LoadString(c.arguments, "arguments")
		if err != nil {
			t.Fatal(err)
		}
		for function, want := range map[string][2]string{
			"boto_vpc.get_id":        {"{'id': None}", "{'id': 'vpc-"},
			"boto_vpc.exists":        {"{'exists': False}", "{'exists': True}"},
			"boto_vpc.describe_vpcs": {"{'vpcs': []}", "'cidr_block': '10.1.0.0/16'"},
		} {
			v, err := table.Call(context.Background(), function, nil, doc.Value.(*value.Map))
			text := want[0]
			if c.found {
				text = want[1]
			}
			if got := value.Repr(v); err != nil || !strings.Contains(got, text) || strings.Contains(got, "10.2.0.0") {
				t.Errorf("%s of %s gives %s, %v; want %s", function, c.arguments, got, err, text)
			}
		}
	}
}
