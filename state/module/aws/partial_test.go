package aws_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// changing reports whether an operation changes something.
func changing(operation string) bool {
	return !slices.ContainsFunc([]string{"Describe", "Get", "List", "Head", "Lookup"},
		func(begin string) bool { return strings.HasPrefix(operation, begin) })
}

// TestEachRefusedRequestIsReported refuses each request that creates a resource once. If requests before it were
// accepted, the report lists what was done.
func TestEachRefusedRequestIsReported(t *testing.T) {
	i := newImitation(t, newMachines(1), newNetworks(1), newSecurityGroups(1), newIAMMembers(1), newIAMAccount(1),
		newIAMRoles(1), newQueues(1), newTopics(0), newDynamoTables(1), newAlarms(), newBalancers(), newZones(1),
		newScaling(1), newTemplates(), newEncryptionKeys(), newTargetGroups(1), newBuckets(1), newCaches(1), oneAccount{})
	runState(t, i.cloud(), "boto_route53.hosted_zone_present", "{name: example.com.}", false)
	for _, r := range resources() {
		t.Run(r.function, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { r.tryRefusals(t, i) })
		})
	}
}

// tryRefusals creates a resource. It refuses each request that changes something at its first attempt.
func (r resource) tryRefusals(t *testing.T, i *imitation) {
	t.Helper()
	tried, sent, refused := map[string]bool{}, []string{}, ""
	i.before = func(operation string) {
		i.refuse = nil
		switch {
		case changing(operation) && !tried[operation]:
			tried[operation], refused = true, operation
			i.refuse = map[string]string{operation: "AccessDenied"}
		case changing(operation):
			sent = append(sent, operation)
		}
	}
	defer func() { i.before, i.refuse = nil, nil }()
	for range 20 {
		sent, refused = nil, ""
		changes, err := tryState(t, i.cloud(), r.function, r.base, false)
		if err != nil && len(sent) > 0 && changes.Value("done") == nil {
			t.Errorf("%v were sent, %s was refused, and the report lists nothing: %v", sent, refused, err)
		}
		if refused == "" {
			return
		}
	}
	t.Errorf("the state is not done after %v", sortedKeys(tried))
}

// TestNewKeyWithoutAliasIsWithdrawn refuses the alias of a new key. The run schedules the deletion of the key, since no
// run would find it, and names it.
func TestNewKeyWithoutAliasIsWithdrawn(t *testing.T) {
	keys := newEncryptionKeys()
	i := newImitation(t, keys)
	i.refuse = map[string]string{"CreateAlias": "AccessDenied"}
	changes, err := tryState(t, i.cloud(), "boto_kms.key_present", "{name: k}", false)
	if err == nil || !strings.Contains(err.Error(), "its new key key-0 is deleted in 7 days") ||
		value.Repr(changes.Value("done")) != "['CreateKey key-0', 'ScheduleKeyDeletion key-0']" ||
		keys.all["key-0"].KeyState != types.KeyStatePendingDeletion {
		t.Errorf("the run ends with %v, and its report is %s", err, value.Repr(changes))
	}
	i.refuse["ScheduleKeyDeletion"] = "AccessDenied"
	if _, err = tryState(t, i.cloud(), "boto_kms.key_present", "{name: k}", false); !strings.Contains(withHint(err),
		"the key key-1 has no alias") {
		t.Errorf("a key that stays gives %v", withHint(err))
	}
}

// TestArgumentsThatAreNotGivenAreNotManaged sets arguments and leaves them out then.
func TestArgumentsThatAreNotGivenAreNotManaged(t *testing.T) {
	i := newImitation(t, newNetworks(0), newEncryptionKeys(), newTargetGroups(0))
	for _, s := range [][3]string{
		{"boto_vpc.present", "name: net, cidr_block: 10.9.0.0/16", "dns_support: false, dns_hostnames: true"},
		{"boto_kms.key_present", "name: k", "key_rotation: true, description: d, policy: {Version: '2012-10-17'}"},
		{"boto_elbv2.create_target_group", "name: tg, protocol: HTTP, port: 80", "health_check_interval_seconds: 20, " +
			"health_check_path: /up, unhealthy_threshold_count: 4, health_check_port: 81"},
	} {
		runState(t, i.cloud(), s[0], "{"+s[1]+", "+s[2]+"}", false)
		if changes := runState(t, i.cloud(), s[0], "{"+s[1]+"}", false); changes.Len() > 0 {
			t.Errorf("%s without %s changes %s", s[0], s[2], value.Repr(changes))
		}
	}
	diff := lookAt(t, i.cloud(), "boto_elbv2.create_target_group", "{name: tg, protocol: TCP, port: 81}")
	if want := "[port is 80 and cannot be changed protocol is HTTP and cannot be changed]"; fmt.Sprint(diff.Warnings) !=
		want || diff.Changes.Len() > 0 {
		t.Errorf("another port and protocol give %q and %s", diff.Warnings, value.Repr(diff.Changes))
	}
}

// staleReads answers reads after a change as before it, some times.
type staleReads struct {
	service
	old    map[string]any // by request
	behind map[string]int
}

func (s *staleReads) answer(in any) (any, error) {
	text, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprintf("%T %s", in, text)
	if changing(strings.TrimPrefix(fmt.Sprintf("%T", in), "*ec2.")) {
		for key := range s.old {
			s.behind[key] = 2
		}
		return s.service.answer(in)
	}
	if s.behind[key] > 0 {
		s.behind[key]--
		return s.old[key], nil
	}
	out, err := s.service.answer(in)
	if out != nil && err == nil {
		s.old[key] = out
	}
	return out, err
}

// TestRunsWaitForWhatTheyMade makes the parts of a network in one run, while AWS shows new resources only after some
// reads.
func TestRunsWaitForWhatTheyMade(t *testing.T) {
	networks := newNetworks(0)
	i := newImitation(t, &staleReads{service: networks, old: map[string]any{}, behind: map[string]int{}})
	synctest.Test(t, func(t *testing.T) {
		run := i.cloud()
		for _, s := range [][2]string{{"present", "{name: net, cidr_block: 10.9.0.0/16, dns_hostnames: true}"},
			{"subnet_present", "{name: sub, vpc_name: net, cidr_block: 10.9.1.0/24, auto_assign_public_ipv4: true}"},
			{"internet_gateway_present", "{name: gate, vpc_name: net}"},
			{"route_table_present", "{name: ways, vpc_name: net, subnet_names: [sub], routes: [{destination_cidr_block: " +
				"0.0.0.0/0, internet_gateway_name: gate}]}"}} {
			runState(t, run, "boto_vpc."+s[0], s[1], false)
		}
	})
	if len(networks.vpcs) != 2 || len(networks.subnets) != 1 || len(networks.gateways) != 1 || len(networks.tables) != 1 {
		t.Errorf("the run makes %d VPCs, %d subnets, %d gateways and %d tables", len(networks.vpcs)-1, len(networks.subnets),
			len(networks.gateways), len(networks.tables))
	}
}

// TestAbsentWithoutItsParent deletes resources whose VPC, subnet, zone or group does not exist. They are as declared.
func TestAbsentWithoutItsParent(t *testing.T) {
	i := newImitation(t, newMachines(0), newNetworks(0), newSecurityGroups(0), newZones(0), newTargetGroups(0),
		newScaling(0),
		newTemplates(), newBalancers(), newIAMMembers(0), newIAMAccount(0), newIAMRoles(0), newCaches(0), oneAccount{})
	for _, s := range [][2]string{{"boto_secgroup.absent", "vpc_name: gone"}, {"boto_vpc.subnet_absent", "vpc_name: gone"},
		{"boto_vpc.nat_gateway_absent", "subnet_name: gone"}, {"boto_vpc.route_table_absent", "vpc_name: gone"},
		{"boto_vpc.internet_gateway_absent", "vpc_name: gone"}, {"boto_vpc.dhcp_options_absent", "vpc_name: gone"},
		{"boto_route53.absent", "zone: gone., record_type: A"}, {"boto_route53.hosted_zone_absent", "domain_name: gone."},
		{"boto_elbv2.delete_target_group", ""}, {"boto_iam.keys_absent", "access_keys: [AKIAGONE], user_name: gone"},
		{"boto_asg.absent", ""}, {"boto_lc.absent", ""}, {"boto_elb.absent", ""}, {"boto_iam_role.absent", ""},
		{"boto_iam.user_absent", ""}, {"boto_iam.group_absent", ""}, {"boto_iam.policy_absent", ""},
		{"boto_elasticache.absent", ""}, {"boto_elasticache.subnet_group_absent", ""}, {"boto_ec2.instance_absent", ""},
		{"boto_ec2.eni_absent", ""}, {"boto_ec2.key_absent", ""}} {
		if changes, err := tryState(t, i.cloud(), s[0], "{name: x, "+s[1]+"}", true); err != nil || changes.Len() > 0 {
			t.Errorf("%s with %s gives %v and changes %s", s[0], s[1], err, value.Repr(changes))
		}
	}
}
