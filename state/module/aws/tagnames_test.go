package aws_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestResourcesAreFoundByTheTagName checks that a resource whose tag Name differs from the name of its state is found
// by that tag, so that it is created once, and that other states find it by the name of its state.
func TestResourcesAreFoundByTheTagName(t *testing.T) {
	n := newNetworks(1)
	i := newImitation(t, n)
	before := len(n.vpcs) + len(n.gateways) + len(n.subnets) + len(n.tables)
	states := [][2]string{
		{"boto_vpc.present", "{name: net, cidr_block: 10.9.0.0/16, tags: {Name: the-net}}"},
		{"boto_vpc.internet_gateway_present", "{name: gate, vpc_name: net, tags: {Name: the-gate}}"},
		{"boto_vpc.subnet_present", "{name: sub, vpc_name: net, cidr_block: 10.9.1.0/24, tags: {Name: the-sub}}"},
		{"boto_vpc.route_table_present", "{name: ways, vpc_name: net, subnet_names: [sub], tags: {Name: the-ways}, routes: " +
			"[{destination_cidr_block: 0.0.0.0/0, internet_gateway_name: gate}]}"},
	}
	for _, run := range []string{"first", "second"} {
		for _, dry := range []bool{true, false} {
			cloud := i.cloud()
			for _, s := range states {
				changes := runState(t, cloud, s[0], s[1], dry)
				if made := changes.Len() > 0; made != (run == "first") {
					t.Errorf("the %s run of %s changes %s", run, s[0], value.Repr(changes))
				}
			}
		}
	}
	if all := len(n.vpcs) + len(n.gateways) + len(n.subnets) + len(n.tables); all != before+4 {
		t.Errorf("there are %d resources, want %d", all, before+4)
	}
	if name := runState(t, i.cloud(), "boto_vpc.present", "{name: the-net, cidr_block: 10.9.0.0/16}",
		true); name.Len() > 0 {
		t.Errorf("the VPC is not found by its tag: %s", value.Repr(name))
	}
}
