package aws_test

import (
	"slices"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// TestNetworksAreComparedAsAWSStoresThem declares rules, routes and networks in forms that AWS replaces by its own. A
// second run changes nothing.
func TestNetworksAreComparedAsAWSStoresThem(t *testing.T) {
	i := newImitation(t, newNetworks(0), newSecurityGroups(0))
	for _, s := range [][2]string{
		{"boto_vpc.present", "{name: net, cidr_block: 10.9.0.5/16}"},
		{"boto_vpc.subnet_present", "{name: sub, vpc_name: net, cidr_block: 10.9.1.7/24}"},
		{"boto_vpc.route_table_present", "{name: ways, vpc_name: net, routes: [{destination_cidr_block: 10.7.0.5/16, " +
			"instance_id: i-1}]}"},
		{"boto_secgroup.present", "{name: g, description: d, rules: [" +
			"{ip_protocol: TCP, from_port: 80, to_port: 80, cidr_ip: [10.0.0.5/8, 10.0.0.0/8]}, " +
			"{ip_protocol: 6, from_port: 81, to_port: 81, cidr_ip: '2001:DB8:0::/32'}, " +
			"{ip_protocol: tcp, cidr_ip: 10.1.0.0/16}, {ip_protocol: '17', from_port: '-1', to_port: -1, " +
			"cidr_ip: 10.1.0.0/16}, " +
			"{ip_protocol: 50, from_port: 1, to_port: 2, cidr_ip: 10.2.0.0/16}, {ip_protocol: icmp, cidr_ip: 10.3.0.0/16}, " +
			"{ip_protocol: icmp, from_port: 8, to_port: -1, cidr_ip: 10.4.0.0/16}]}"},
	} {
		if changes := runState(t, i.cloud(), s[0], s[1], false); changes.Len() == 0 {
			t.Errorf("%s changes nothing", s[0])
		}
		for range 2 {
			if changes := runState(t, i.cloud(), s[0], s[1], false); changes.Len() > 0 {
				t.Errorf("another run of %s changes %s", s[0], value.Repr(changes))
			}
		}
		if diff := lookAt(t, i.cloud(), s[0], s[1]); len(diff.Warnings) > 0 {
			t.Errorf("%s warns of %q", s[0], diff.Warnings)
		}
	}
}

// lookAt plans one state, which must succeed.
func lookAt(t *testing.T, cloud *aws.Cloud, function, arguments string) module.Diff {
	t.Helper()
	diff, err := planned(t, cloud, function, arguments)
	if err != nil {
		t.Fatalf("%s: %v", function, err)
	}
	return diff
}

// planned plans one state. Its error may come from its arguments.
func planned(t *testing.T, cloud *aws.Cloud, function, arguments string) (module.Diff, error) {
	t.Helper()
	doc, err := yaml.LoadString(arguments, function)
	if err != nil {
		t.Fatal(err)
	}
	name, fun, _ := strings.Cut(function, ".")
	r := aws.Tables(cloud)[name][fun]()
	if _, problems := module.Decode(r,
		module.Call{Function: function, Arguments: doc.Value.(*value.Map)}); len(problems) > 0 {
		return module.Diff{}, problems.Err()
	}
	if v, ok := r.(module.Validated); ok {
		if err := v.Valid(); err != nil {
			return module.Diff{}, err
		}
	}
	return r.Check(t.Context(), nil)
}

// TestRulesThatAreThereAreAddedAround adds two rules while another run adds one of them. AWS refuses both then, and the
// run adds the other one.
func TestRulesThatAreThereAreAddedAround(t *testing.T) {
	groups := newSecurityGroups(0)
	i := newImitation(t, groups)
	runState(t, i.cloud(), "boto_secgroup.present", "{name: g, description: d}", false)
	i.before = func(operation string) {
		if g := groups.all["sg-001"]; operation == "AuthorizeSecurityGroupIngress" && len(g.IpPermissions) == 0 {
			g.IpPermissions = []types.IpPermission{{IpProtocol: sdk.String("tcp"), FromPort: sdk.Int32(1), ToPort: sdk.Int32(1),
				IpRanges: []types.IpRange{{CidrIp: sdk.String("10.0.0.0/8")}}}}
		}
	}
	both := "{name: g, description: d, rules: [{ip_protocol: tcp, from_port: 1, to_port: 1, cidr_ip: [10.0.0.0/8, " +
		"11.0.0.0/8]}]}"
	runState(t, i.cloud(), "boto_secgroup.present", both, false)
	var has []string
	for _, p := range groups.all["sg-001"].IpPermissions {
		has = append(has, permissionText(p))
	}
	if want := []string{"tcp 1-1 10.0.0.0/8", "tcp 1-1 11.0.0.0/8"}; !slices.Equal(has, want) {
		t.Errorf("the rules are %q, want %q", has, want)
	}
}

// TestMistakesInsideOfArguments gives mappings in arguments fields that do not exist, and values that AWS cannot have.
// Each is an error of the plan.
func TestMistakesInsideOfArguments(t *testing.T) {
	i := newImitation(t, newNetworks(0), newSecurityGroups(0), newIAMRoles(0), newQueues(0), newTopics(0),
		newDynamoTables(0), newAlarms(), newBalancers(), newZones(0), newScaling(0), newTemplates(), newMachines(0),
		oneAccount{})
	group := "{name: g, launch_config_name: lc, min_size: 1, max_size: 1, availability_zones: [us-east-1a], " +
		"launch_config: [{image_id: ami-1}, {instance_type: m1.small}], "
	rule := "{name: g, description: d, rules: [{"
	balancer := "{name: b, availability_zones: [us-east-1a], listeners: [{elb_port: 80, elb_protocol: HTTP"
	for _, c := range []struct{ function, arguments, want string }{
		{"boto_lc.present", "{name: l, image_id: ami-1, block_device_mappings: [/dev/sda1: {size: 20, encryptd: true}]}",
			`did you mean "encrypted"?`},
		{"boto_lc.present", "{name: l, image_id: ami-1, block_device_mappings: [/dev/sda1: {size: big}]}",
			"'big' is not a whole"},
		{"boto_lc.present", "{name: l, image_id: ami-1, block_device_mappings: [/dev/sda1: {encrypted: 'false'}]}",
			"is not a boolean"},
		{"boto_asg.present", group + "scaling_policies: [{name: p, adjustmnt_type: ExactCapacity}]}",
			`did you mean "adjustment_type"?`},
		{"boto_asg.present", group + "scheduled_actions: {a: {recurence: '0 * * * *'}}}", `did you mean "recurrence"?`},
		{"boto_asg.present", group + "tags: [{key: a, value: b, propagate: true}]}", "has no field propagate"},
		{"boto_elb.present", balancer + ", certifcate: c}]}", `did you mean "certificate"?`},
		{"boto_elb.present", balancer + "}], health_check: {target: 'TCP:1', intervall: 3}}", `did you mean "interval"?`},
		{"boto_elb.present", balancer + "}], cnames: [{name: a, zone: b, tttl: 3}]}", `did you mean "ttl"?`},
		{"boto_vpc.route_table_present", "{name: r, routes: [{destination_cidr_block: 0.0.0.0/0, internet_gateway_nam: i}]}",
			`did you mean "internet_gateway_name"?`},
		{"boto_vpc.route_table_present", "{name: r, routes: [{destination_cidr_block: 0.0.0.0/99}]}", "99 bits"},
		{"boto_vpc.present", "{name: r, cidr_block: 10.0.0.0/99}", "99 bits"},
		{"boto_vpc.present", "{name: r, cidr_block: 10.0.0.0/8}", "16 to 28 bits"},
		{"boto_vpc.subnet_present", "{name: r, cidr_block: 10.0.0.0}", "write 10.0.0.0/32"},
		{"boto_secgroup.present", rule + "ip_protocol: tcp, from_port: 1, toport: 1, cidr_ip: 10.0.0.0/8}]}",
			`did you mean "to_port"?`},
		{"boto_secgroup.present", rule + "ip_protocol: tcp, from_port: ssh, to_port: 22, cidr_ip: 10.0.0.0/8}]}",
			"'ssh' is not a whole number"},
		{"boto_secgroup.present", rule + "ip_protocol: icmp, from_port: echo, cidr_ip: 10.0.0.0/8}]}",
			"'echo' is not a whole number"},
		{"boto_secgroup.present", rule + "ip_protocol: all, cidr_ip: 10.0.0.0/99}]}", "99 bits"},
		{"boto_secgroup.present", rule + "ip_protocol: tpc, from_port: 1, to_port: 1, cidr_ip: 10.0.0.0/8}]}",
			`did you mean "tcp"?`},
		{"boto_secgroup.present", rule + "ip_protocol: tcp, from_port: 1, to_port: 70000, cidr_ip: 10.0.0.0/8}]}",
			"ports 0 to 65535"},
		{"boto_secgroup.present", rule + "ip_protocol: tcp, from_port: 1, cidr_ip: 10.0.0.0/8}]}",
			"ports 0 to 65535"},
		{"boto_secgroup.present", rule + "ip_protocol: tcp, from_port: 5, to_port: 2, cidr_ip: 10.0.0.0/8}]}",
			"above to_port"},
		{"boto_sqs.present", "{name: q, profile: {regon: eu-west-1}}", `did you mean "region"?`},
		{"boto_sqs.present", "{name: q, region: ''}", "it is empty"},
		{"boto_sns.present", "{name: q, subscriptions: [{protocl: sqs, endpoint: x}]}", `did you mean "protocol"?`},
		{"boto_dynamodb.present", "{name: t, hash_key: id, hash_key_data_type: S, local_indexes: [i: [{name: i}, " +
			"{hash_key: id}, {rang_key: x}]]}", `did you mean "range_key"?`},
		{"boto_dynamodb.present", "{name: t, hash_key: id, hash_key_data_type: X}", "hash_key_data_type is X"},
		{"boto_route53.present", "{name: a, zone: b., record_type: AAAAA, value: x}", `did you mean "AAAA"?`},
		{"boto_asg.present", strings.Replace(group, "max_size: 1", "max_size: 0", 1) + "}", "not in order"},
		{"boto_asg.present", strings.Replace(group, "availability_zones", "vpc_zone_identifier", 1) + "}", "subnet_names"},
		{"boto_cloudwatch_alarm.present", "{name: a, attributes: {metric: m, namespace: n, statistic: Avrage, comparison: " +
			"'>=', threshold: 1, period: 60, evaluation_periods: 1}}", `did you mean "Average"?`},
		{"boto_s3_bucket.present", "{Bucket: my bucket}", "cannot be the name of a bucket"},
	} {
		_, err := planned(t, i.cloud(), c.function, c.arguments)
		if err == nil || !strings.Contains(withHint(err), c.want) {
			t.Errorf("%s %s gives %v, want %s", c.function, c.arguments, err, c.want)
		}
	}
}
