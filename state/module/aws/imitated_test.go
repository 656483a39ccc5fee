package aws_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	sdk "github.com/aws/aws-sdk-go-v2/aws"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestEveryDriftIsFoundInAnImitation tests the drifts of each resource, including those that an emulator does not keep.
func TestEveryDriftIsFoundInAnImitation(t *testing.T) {
	i := newImitation(t, newMachines(1), newNetworks(1), newSecurityGroups(1), newIAMMembers(1), newIAMAccount(1),
		newIAMRoles(1), newQueues(1), newTopics(0), newDynamoTables(1), newAlarms(), newBalancers(), newZones(1),
		newScaling(1), newTemplates(), newEncryptionKeys(), newTargetGroups(1), newBuckets(1), newCaches(1), oneAccount{})
	runState(t, i.cloud(), "boto_secgroup.present", "{name: other, description: other}", false)
	runState(t, i.cloud(), "boto_secgroup.present", "{name: default, description: other}", false)
	runState(t, i.cloud(), "boto_route53.hosted_zone_present", "{name: example.com.}", false)
	runState(t, i.cloud(), "boto_elb.present", "{name: spare, availability_zones: [us-east-1a], listeners: [{elb_port: "+
		"80, elb_protocol: HTTP}]}", false)
	for _, name := range []string{"own", "a", "c"} {
		runState(t, i.cloud(), "boto_iam.policy_present", "{name: "+name+", policy_document: {Version: '2012-10-17'}}", false)
	}
	for _, r := range slices.Concat(resources(), imitatedResources(), machineResources()) {
		t.Run(r.function, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { r.try(t, i.cloud) }) // waiting takes no time
		})
	}
}

// imitatedResources are resources whose drifts an emulator does not keep.
func imitatedResources() []resource {
	return []resource{
		{function: "boto_sns.present", base: "{name: subscribed, subscriptions: [{protocol: sqs, endpoint: a}]}",
			drift: map[string]string{
				"subscriptions": "subscriptions: [{protocol: sqs, endpoint: a}, {protocol: sqs, endpoint: b}, {protocol: email, " +
					"endpoint: c}]"}},
		{function: "boto_iam_role.present",
			base: "{name: managed, managed_policies: [own], create_instance_profile: false}", drift: map[string]string{
				"managed_policies":        "managed_policies: [own, c, 'arn:aws:iam::aws:policy/theirs']",
				"managed_policies other":  "managed_policies: [a]",
				"managed_policies none":   "managed_policies: []",
				"create_instance_profile": "create_instance_profile: true"}},
		{function: "boto_secgroup.present", base: "{name: wide, description: d, rules: [{ip_protocol: tcp, " +
			"from_port: 1, to_port: 9, cidr_ip: ['::/0', 10.0.0.0/8]}]}",
			drift: map[string]string{
				"rules six":  "rules: [{ip_protocol: tcp, from_port: 1, to_port: 9, cidr_ip: ['2001:db8::/32', 10.0.0.0/8]}]",
				"rules icmp": "rules: [{ip_protocol: icmp, from_port: -1, to_port: -1, cidr_ip: 10.0.0.0/8}]",
				"rules of others": "rules: [{ip_protocol: tcp, from_port: 1, to_port: 9, source_group_name: theirs, " +
					"source_group_owner_id: '222222222222'}]"}},
		{function: "boto_dynamodb.present", base: "{name: by-request, hash_key: id, hash_key_data_type: S}",
			drift: map[string]string{
				"read_capacity_units": "read_capacity_units: 5, write_capacity_units: 5",
				"global_indexes": "global_indexes: [index: [{name: g}, {hash_key: other}, {hash_key_data_type: S}, " +
					"{range_key: at}, {range_key_data_type: N}]]"}},
	}
}

// TestAbsentInAnImitation creates resources and deletes them. A dry run only reports the deletion, and a second run
// changes nothing.
func TestAbsentInAnImitation(t *testing.T) {
	groups, roles, queues, topics, tables, alarms := newSecurityGroups(1), newIAMRoles(1), newQueues(1), newTopics(0),
		newDynamoTables(1), newAlarms()
	i := newImitation(t, groups, roles, queues, topics, tables, alarms)
	left := map[string]func() int{"boto_secgroup": func() int { return len(groups.all) },
		"boto_iam_role": func() int { return len(roles.all) + len(roles.profiles) },
		"boto_sqs":      func() int { return len(queues.all) }, "boto_sns": func() int { return len(topics.all) },
		"boto_dynamodb":         func() int { return len(tables.all) },
		"boto_cloudwatch_alarm": func() int { return len(alarms.all) }}
	for module, arguments := range map[string]string{
		"boto_secgroup": "description: d", "boto_sqs": "attributes: {DelaySeconds: 3}",
		"boto_sns":              "subscriptions: [{protocol: sqs, endpoint: a}]",
		"boto_iam_role":         "managed_policies: [own], policies: {p: {Version: '2012-10-17', Statement: []}}",
		"boto_dynamodb":         "hash_key: id, hash_key_data_type: S",
		"boto_cloudwatch_alarm": "attributes: {" + alarmAttributes + "}",
	} {
		if changes := runState(t, i.cloud(), module+".absent", "{name: x}", false); changes.Len() > 0 {
			t.Errorf("%s.absent of a missing resource changes %s", module, value.Repr(changes))
		}
		runState(t, i.cloud(), module+".present", "{name: x, "+arguments+"}", false)
		before := left[module]()
		if changes := runState(t, i.cloud(), module+".absent", "{name: x}", true); changes.Value("old") == nil ||
			left[module]() != before || before == 0 {
			t.Errorf("a dry run of %s.absent says %s, and leaves %d of %d", module, value.Repr(changes), left[module](), before)
		}
		runState(t, i.cloud(), module+".absent", "{name: x}", false)
		if n := left[module](); n != 0 {
			t.Errorf("%s.absent leaves %d", module, n)
		}
		if changes := runState(t, i.cloud(), module+".absent", "{name: x}", false); changes.Len() > 0 {
			t.Errorf("a second %s.absent changes %s", module, value.Repr(changes))
		}
		// SQS refuses a new queue of that name at first.
		runState(t, i.cloud(), module+".present", "{name: x, "+arguments+"}", false)
		if left[module]() == 0 {
			t.Errorf("%s.present after absent creates nothing", module)
		}
	}
}

// TestAbsentNetworks deletes the parts of a network and then the network. A dry run only reports the deletion, and a
// second run changes nothing.
func TestAbsentNetworks(t *testing.T) {
	n := newNetworks(1)
	i := newImitation(t, n)
	for _, s := range [][2]string{{"present", "{name: net, cidr_block: 10.9.0.0/16}"},
		{"present", "{name: net2, cidr_block: 10.10.0.0/16}"},
		{"subnet_present", "{name: sub, vpc_name: net, cidr_block: 10.9.1.0/24}"},
		{"nat_gateway_present", "{name: nat, subnet_name: sub}"},
		{"internet_gateway_present", "{name: gate, vpc_name: net}"},
		{"route_table_present", "{name: ways, vpc_name: net, subnet_names: [sub]}"},
		{"dhcp_options_present", "{name: dhcp, vpc_name: net, domain_name: example.com}"},
		{"vpc_peering_connection_present", "{name: peer, requester_vpc_name: net, peer_vpc_name: net2}"}} {
		runState(t, i.cloud(), "boto_vpc."+s[0], s[1], false)
	}
	n.vpcs["vpc-1"].DhcpOptionsId = sdk.String("other")
	for _, v := range n.vpcs {
		v.DhcpOptionsId = sdk.String("default") // options that a VPC uses cannot be deleted
	}
	left := func() int {
		peers := 0
		for _, p := range n.peers {
			if p.Status.Code != "deleted" {
				peers++
			}
		}
		return len(n.vpcs) + len(n.subnets) + len(n.nats) + len(n.gateways) + len(n.tables) + len(n.options) + peers
	}
	for _, s := range [][2]string{{"vpc_peering_connection_absent", "{name: peer}"},
		{"nat_gateway_absent", "{name: nat, subnet_name: sub}"},
		{"route_table_absent", "{name: ways}"}, {"internet_gateway_absent", "{name: gate, detach: true}"},
		{"dhcp_options_absent", "{name: dhcp}"},
		{"subnet_absent", "{name: sub}"}, {"absent", "{name: net}"}, {"absent", "{name: net2}"}} {
		before := left()
		if changes := runState(t, i.cloud(), "boto_vpc."+s[0], s[1], true); changes.Value("old") == nil || left() != before {
			t.Errorf("a dry run of %s says %s, and leaves %d of %d", s[0], value.Repr(changes), left(), before)
		}
		runState(t, i.cloud(), "boto_vpc."+s[0], s[1], false)
		if left() != before-1 {
			t.Errorf("%s leaves %d of %d", s[0], left(), before)
		}
		if changes := runState(t, i.cloud(), "boto_vpc."+s[0], s[1], false); changes.Len() > 0 {
			t.Errorf("a second %s changes %s", s[0], value.Repr(changes))
		}
	}
}

// TestAllPagesAreReadOnce checks that resources of all pages are found, and that the states of a run share the
// lists.
func TestAllPagesAreReadOnce(t *testing.T) {
	i := newImitation(t, newSecurityGroups(0), newIAMRoles(0), newTopics(0))
	each := func(change bool) {
		cloud := i.cloud()
		for n := range 5 {
			for _, s := range [][2]string{{"boto_secgroup.present", "{name: n%d, description: d}"},
				{"boto_iam_role.present", "{name: n%d}"}, {"boto_sns.present", "{name: n%d}"}} {
				if changes := runState(t, cloud, s[0], fmt.Sprintf(s[1], n), false); change == (changes.Len() == 0) {
					t.Errorf("%s of number %d changes %s", s[0], n, value.Repr(changes))
				}
			}
		}
	}
	each(true)
	i.requests = map[string]int{}
	each(false)
	want := map[string]int{"DescribeVpcs": 2, "DescribeSecurityGroups": 3, "GetAccountAuthorizationDetails": 3,
		"ListTopics": 3}
	if fmt.Sprint(i.requests) != fmt.Sprint(want) {
		t.Errorf("a run with nothing to change makes the requests %v, want %v", i.requests, want)
	}
}

// TestVPCsMayHaveGroupsOfTheSameName checks that groups of two VPCs may have the same name.
func TestVPCsMayHaveGroupsOfTheSameName(t *testing.T) {
	groups := newSecurityGroups(0)
	i := newImitation(t, groups)
	for _, vpc := range []string{"", ", vpc_name: net", ", vpc_id: vpc-3"} {
		arguments := "{name: g, description: d, rules: [{ip_protocol: all, source_group_name: g}]" + vpc + "}"
		if changes := runState(t, i.cloud(), "boto_secgroup.present", arguments, false); changes.Len() == 0 {
			t.Errorf("nothing is created for %s", arguments)
		}
	}
	var seen []string
	for _, g := range sortedBy(groups.all) {
		seen = append(seen, *g.VpcId+" "+permissionText(g.IpPermissions[0]))
	}
	if want := []string{"vpc-1 -1 0-0 sg-001 of 123456789012", "vpc-2 -1 0-0 sg-002 of 123456789012",
		"vpc-3 -1 0-0 sg-003 of 123456789012"}; !slices.Equal(seen, want) {
		t.Errorf("the groups are %q, want %q", seen, want)
	}
}

// TestThrottledRequestsAreRepeated checks that throttled requests are sent again.
func TestThrottledRequestsAreRepeated(t *testing.T) {
	queues := newQueues(0)
	i := newImitation(t, queues)
	i.throttle = map[string]int{"GetQueueUrl": 1, "CreateQueue": 1}
	runState(t, i.cloud(), "boto_sqs.present", "{name: q}", false)
	if queues.all["q"] == nil || i.requests["GetQueueUrl"] != 2 || i.requests["CreateQueue"] != 2 {
		t.Errorf("the queues are %v after the requests %v", queues.all, i.requests)
	}
}

// TestEventuallyConsistentListsAreRetried checks that a run waits for its own new resources, and that the next run
// finds resources of the run before that lists do not show yet.
func TestEventuallyConsistentListsAreRetried(t *testing.T) {
	roles, topics, tables := newIAMRoles(2), newTopics(3), newDynamoTables(2)
	i := newImitation(t, roles, topics, tables)
	runState(t, i.cloud(), "boto_sns.present", "{name: t, subscriptions: [{protocol: sqs, endpoint: a}, {protocol: sqs, "+
		"endpoint: b}]}", false)
	if i.requests["Subscribe"] != 2 {
		t.Errorf("a new topic gives the requests %v", i.requests)
	}
	role := "{name: r, managed_policies: [own]}"
	runState(t, i.cloud(), "boto_iam_role.present", role, false)
	roles.all["r"].unlisted = lag{1}
	runState(t, i.cloud(), "boto_iam_role.present", role, false)
	if got := fmt.Sprint(roles.all["r"].attached, roles.profiles["r"].role); got != "["+policyARNs+"own]r" {
		t.Errorf("the role has %s", got)
	}
	runState(t, i.cloud(), "boto_dynamodb.present", "{name: t, hash_key: id, hash_key_data_type: S}", false)
	tables.all["t"].deleting, tables.all["t"].busy = true, lag{1}
	if _, err := tryState(t, i.cloud(), "boto_dynamodb.present", "{name: t, hash_key: id, hash_key_data_type: S}",
		true); err == nil ||
		!strings.Contains(err.Error(), "table t is being deleted") {
		t.Errorf("a table that is being deleted gives %v", err)
	}
}

// TestPartialFailureListsSentRequests checks that the report of a failed state lists the requests that were sent, and
// that the next run sends only the others.
func TestPartialFailureListsSentRequests(t *testing.T) {
	roles := newIAMRoles(0)
	i := newImitation(t, roles)
	i.refuse = map[string]string{"AttachRolePolicy": "AccessDenied"}
	arguments := "{name: r, managed_policies: [own], policies: {p: {Version: '2012-10-17', Statement: []}}}"
	changes, err := tryState(t, i.cloud(), "boto_iam_role.present", arguments, false)
	if err == nil || !strings.Contains(err.Error(), "AccessDenied") ||
		!strings.Contains(err.Error(), "attaching a policy to role r") {
		t.Errorf("a request that is refused gives %v", err)
	}
	if want := "['role made', 'instance profile made', 'policy p set']"; value.Repr(changes.Value("done")) != want {
		t.Errorf("the sent requests are %s, want %s", value.Repr(changes), want)
	}
	i.refuse, i.requests = nil, map[string]int{}
	runState(t, i.cloud(), "boto_iam_role.present", arguments, false)
	if len(roles.all["r"].attached) != 1 ||
		i.requests["CreateRole"]+i.requests["PutRolePolicy"]+i.requests["CreateInstanceProfile"] > 0 {
		t.Errorf("the next run makes the requests %v, and the role has %v", i.requests, roles.all["r"].attached)
	}
}

// TestTargetsAreRegisteredAndDeregistered checks that a draining target counts as deregistered, and that a registered
// target is not registered again. Throttled requests are sent again.
func TestTargetsAreRegisteredAndDeregistered(t *testing.T) {
	groups := newTargetGroups(2)
	i := newImitation(t, newNetworks(0), groups)
	i.throttle = map[string]int{"CreateTargetGroup": 1, "RegisterTargets": 1, "DescribeTargetHealth": 1}
	runState(t, i.cloud(), "boto_elbv2.create_target_group", "{name: tg, protocol: HTTP, port: 80}", false)
	for _, c := range []struct{ function, targets, changes, left string }{
		{"targets_registered", "[i-1, i-2, i-3]", "['i-1', 'i-2', 'i-3']", "[i-1 i-2 i-3]"},
		{"targets_registered", "[i-2]", "{}", "[i-1 i-2 i-3]"},
		{"targets_deregistered", "[i-1, i-2]", "['i-3']", "[i-3]"},
		{"targets_deregistered", "[i-1]", "{}", "[i-3]"},
		{"targets_registered", "[i-1]", "['i-1', 'i-3']", "[i-3 i-1]"},
	} {
		arguments := "{name: tg, targets: " + c.targets + "}"
		planned := runState(t, i.cloud(), "boto_elbv2."+c.function, arguments, true)
		done := runState(t, i.cloud(), "boto_elbv2."+c.function, arguments, false)
		left := fmt.Sprint(groups.all[targetARNs+"tg"].targets)
		if !value.Equal(planned, done) || !strings.Contains(value.Repr(done), c.changes) || left != c.left {
			t.Errorf("%s of %s: the plan is %s, the run does %s and leaves %s", c.function, c.targets, value.Repr(planned),
				value.Repr(done), left)
		}
	}
	if i.requests["RegisterTargets"] != 3 || i.requests["CreateTargetGroup"] != 2 {
		t.Errorf("the requests are %v", i.requests)
	}
	runState(t, i.cloud(), "boto_elbv2.delete_target_group", "{name: tg}", false)
	if len(groups.all) != 0 {
		t.Error("the target group still exists")
	}
}
