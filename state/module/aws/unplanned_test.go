package aws_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// deletions are the states that delete resources, each with a state that makes one, and with one that makes another of
// the same name if that has to differ.
var deletions = []struct{ absent, made, other string }{
	{absent: "boto_vpc.absent {name: x}", made: "boto_vpc.present {name: x, cidr_block: 10.1.0.0/16}"},
	{absent: "boto_vpc.subnet_absent {name: x}",
		made: "boto_vpc.subnet_present {name: x, vpc_name: net, cidr_block: 10.9.2.0/24}"},
	{absent: "boto_vpc.internet_gateway_absent {name: x}", made: "boto_vpc.internet_gateway_present {name: x}"},
	{absent: "boto_vpc.route_table_absent {name: x}", made: "boto_vpc.route_table_present {name: x, vpc_name: net}"},
	{absent: "boto_vpc.nat_gateway_absent {name: x, subnet_name: sub}",
		made: "boto_vpc.nat_gateway_present {name: x, subnet_name: sub}"},
	{absent: "boto_vpc.dhcp_options_absent {name: x}",
		made: "boto_vpc.dhcp_options_present {name: x, vpc_name: net, domain_name: a.example}"},
	{absent: "boto_vpc.vpc_peering_connection_absent {name: x}",
		made: "boto_vpc.vpc_peering_connection_present {name: x, requester_vpc_name: net, peer_vpc_name: net2}"},
	{absent: "boto_vpc.delete_vpc_peering_connection {name: x}",
		made: "boto_vpc.request_vpc_peering_connection {name: x, requester_vpc_name: net, peer_vpc_name: net2}"},
	{absent: "boto_secgroup.absent {name: x, vpc_name: net}",
		made: "boto_secgroup.present {name: x, vpc_name: net, description: d}"},
	{absent: "boto_ec2.key_absent {name: x}", made: "boto_ec2.key_present {name: x, upload_public: ssh-ed25519 AAAA}"},
	{absent: "boto_ec2.instance_absent {name: x}", made: "boto_ec2.instance_present {name: x, image_id: ami-1}"},
	{absent: "boto_ec2.volume_absent {name: v, volume_name: x}",
		made: "boto_ec2.volume_present {name: x, instance_name: kept, device: /dev/sdf, size: 1}"},
	{absent: "boto_ec2.eni_absent {name: x}", made: "boto_ec2.eni_present {name: x, subnet_name: sub, groups: [sg-1]}"},
	{absent: "boto_iam.user_absent {name: x}", made: "boto_iam.user_present {name: x}"},
	{absent: "boto_iam.group_absent {name: x}", made: "boto_iam.group_present {name: x}"},
	{absent: "boto_iam.policy_absent {name: x}",
		made: "boto_iam.policy_present {name: x, policy_document: {Version: '2012-10-17'}}"},
	{absent: "boto_iam.server_cert_absent {name: x}", made: "boto_iam.server_cert_present {name: x, public_key: " +
		"'-----BEGIN CERTIFICATE-----', private_key: '-----BEGIN PRIVATE KEY-----'}"},
	{absent: "boto_iam.saml_provider_absent {name: x}",
		made: "boto_iam.saml_provider_present {name: x, saml_metadata_document: '<a/>'}"},
	{absent: "boto_iam_role.absent {name: x}", made: "boto_iam_role.present {name: x}"},
	{absent: "boto_elb.absent {name: x}", made: "boto_elb.present {name: x, availability_zones: [us-east-1a], " +
		"listeners: [{elb_port: 80, elb_protocol: HTTP}]}"},
	{absent: "boto_elbv2.delete_target_group {name: x}",
		made: "boto_elbv2.create_target_group {name: x, protocol: HTTP, port: 80, vpc_name: net}"},
	{absent: "boto_sqs.absent {name: x}", made: "boto_sqs.present {name: x}"},
	{absent: "aws_sqs.absent {name: y}", made: "aws_sqs.present {name: y}"},
	{absent: "boto_sns.absent {name: x}", made: "boto_sns.present {name: x}",
		other: "boto_sns.present {name: x, subscriptions: [{protocol: sqs, endpoint: theirs}]}"},
	{absent: "boto_lc.absent {name: x}", made: "boto_lc.present {name: x, image_id: ami-1, instance_type: t3.micro}"},
	{absent: "boto_asg.absent {name: x}", made: "boto_asg.present {name: x, launch_config_name: y, launch_config: " +
		"[{image_id: ami-1}, {instance_type: t3.micro}], availability_zones: [us-east-1a], min_size: 0, max_size: 0}"},
	{absent: "boto_cloudwatch_alarm.absent {name: x}",
		made: "boto_cloudwatch_alarm.present {name: x, attributes: {" + alarmAttributes + "}}"},
	{absent: "boto_route53.absent {name: a.example.com, zone: example.com, record_type: A}",
		made:  "boto_route53.present {name: a.example.com, zone: example.com, record_type: A, value: 192.0.2.1}",
		other: "boto_route53.present {name: a.example.com, zone: example.com, record_type: A, value: 192.0.2.9}"},
	{absent: "boto_route53.rr_absent {name: b.example.com, zone: example.com, record_type: A}",
		made:  "boto_route53.rr_present {name: b.example.com, zone: example.com, record_type: A, value: 192.0.2.1}",
		other: "boto_route53.rr_present {name: b.example.com, zone: example.com, record_type: A, value: 192.0.2.9}"},
	{absent: "boto_route53.hosted_zone_absent {name: x.example}",
		made: "boto_route53.hosted_zone_present {name: x.example}"},
	{absent: "boto_dynamodb.absent {name: x}",
		made: "boto_dynamodb.present {name: x, hash_key: id, hash_key_data_type: S}"},
	{absent: "boto_s3_bucket.absent {name: x, Bucket: x}", made: "boto_s3_bucket.present {name: x, Bucket: x}"},
	{absent: "boto_elasticache.subnet_group_absent {name: x}",
		made: "boto_elasticache.subnet_group_present {name: x, subnet_ids: [subnet-1]}"},
	{absent: "boto_elasticache.absent {name: x, wait: false}",
		made: "boto_elasticache.present {name: x, engine: redis, num_cache_nodes: 1}"},
	{absent: "boto_elasticache.replication_group_absent {name: x, wait: false}",
		made: "boto_elasticache.replication_group_present {name: x, primary_cluster_id: kept, " +
			"replication_group_description: d}"},
}

// newWholeAccount returns an account with what the resources of deletions refer to.
func newWholeAccount(t *testing.T) (*imitation, *networks) {
	nets := newNetworks(0)
	i := newImitation(t, newMachines(0), nets, newSecurityGroups(0), newIAMMembers(0), newIAMAccount(0), newIAMRoles(0),
		newQueues(0), newTopics(0), newDynamoTables(0), newAlarms(), newBalancers(), newZones(0), newScaling(0),
		newTemplates(), newTargetGroups(0), newBuckets(0), newCaches(0), oneAccount{})
	for _, s := range []string{"boto_vpc.present {name: net, cidr_block: 10.9.0.0/16}",
		"boto_vpc.present {name: net2, cidr_block: 10.8.0.0/16}",
		"boto_vpc.subnet_present {name: sub, vpc_name: net, cidr_block: 10.9.1.0/24}",
		"boto_ec2.instance_present {name: kept, image_id: ami-1}", "boto_route53.hosted_zone_present {name: example.com}",
		"boto_elasticache.present {name: kept, engine: redis, num_cache_nodes: 1}"} {
		runText(t, i.cloud(), s, false)
	}
	return i, nets
}

// TestSwappedResourcesAreNotDeleted replaces each resource that a plan deletes by another one of the same name, while
// the person thinks about the plan. The run does not delete it.
func TestSwappedResourcesAreNotDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, nets := newWholeAccount(t)
		free := func() {
			for _, v := range nets.vpcs {
				v.DhcpOptionsId = sdk.String("default") // options that a VPC uses cannot be deleted
			}
		}
		for _, s := range deletions {
			function, arguments, _ := strings.Cut(s.absent, " ")
			runText(t, i.cloud(), s.made, false)
			planned := i.cloud()
			if changes := runText(t, planned, s.absent, true); changes.Value("old") == nil {
				t.Errorf("%s plans nothing", s.absent)
				continue
			}
			free()
			if s.other == "" {
				runText(t, i.cloud(), s.absent, false)
				runText(t, i.cloud(), s.made, false)
			} else {
				runText(t, i.cloud(), s.other, false)
			}
			i.born++
			free()
			run := i.cloud()
			run.Agreed = planned.Removals()
			if _, err := tryState(t, run, function, arguments, false); err == nil ||
				!strings.Contains(err.Error(), "it is not deleted: the plan did not show that") {
				t.Errorf("%s deletes another resource of the name: %v", s.absent, err)
			}
			if i.born = 0; s.other == "" {
				run = i.cloud()
				run.Agreed = agreedTo(t, i, s.absent)
				if _, err := tryState(t, run, function, arguments, false); err != nil {
					t.Errorf("%s does not delete what its plan shows: %v", s.absent, err)
				}
			}
		}
	})
}

// agreedTo returns what a person agrees to who has seen the plan of a state.
func agreedTo(t *testing.T, i *imitation, state string) map[string]bool {
	t.Helper()
	planned := i.cloud()
	runText(t, planned, state, true)
	return planned.Removals()
}

// TestEachDeletionIsSwapped checks that deletions has every state that deletes a resource.
func TestEachDeletionIsSwapped(t *testing.T) {
	known := []string{"boto_iam.keys_absent", // its arguments are the IDs
		"boto_ec2.private_ips_absent", "boto_elasticache.cache_cluster_absent"} // a part; the same as absent
	for _, s := range deletions {
		function, _, _ := strings.Cut(s.absent, " ")
		known = append(known, function)
	}
	for module, table := range aws.Tables(&aws.Cloud{}) {
		for function := range table {
			name := module + "." + function
			if (strings.Contains(function, "absent") || strings.Contains(function, "delete")) &&
				!slices.Contains(known, name) {
				t.Errorf("no test swaps what %s deletes", name)
			}
		}
	}
}

// TestPartsThatThePlanDidNotShowStay has a colleague add a part to a resource after the plan. The run does not remove
// it, and changes nothing of the resource.
func TestPartsThatThePlanDidNotShowStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := newWholeAccount(t)
		runText(t, i.cloud(), "boto_iam.user_present {name: u}", false)
		for _, c := range []struct{ made, declared, colleague, part string }{
			{made: "boto_secgroup.present {name: g, vpc_name: net, description: d, rules: [" + port("80") + "]}",
				declared:  "boto_secgroup.present {name: g, vpc_name: net, description: d, rules: [" + port("81") + "]}",
				colleague: "boto_secgroup.present {name: g, vpc_name: net, description: d, rules: [" + port("80, 22") + "]}",
				part:      "22"},
			{made: elbOn("80"), declared: elbOn("81"), colleague: elbOn("80", "443"), part: "443"},
			{made: "boto_iam_role.present {name: r, policies: {}}", declared: "boto_iam_role.present {name: r, policies: {}}",
				colleague: "boto_iam_role.present {name: r, policies: {p: {Version: '2012-10-17'}}}", part: "policies.p"},
			{made: "boto_vpc.route_table_present {name: w, vpc_name: net, routes: []}",
				declared: "boto_vpc.route_table_present {name: w, vpc_name: net, routes: []}",
				colleague: "boto_vpc.route_table_present {name: w, vpc_name: net, routes: [{destination_cidr_block: " +
					"10.7.0.0/16, gateway_id: igw-1}]}", part: "10.7.0.0/16"},
			{made: "boto_iam.group_present {name: g, users: []}", declared: "boto_iam.group_present {name: g, users: []}",
				colleague: "boto_iam.group_present {name: g, users: [u]}", part: "u"},
		} {
			runText(t, i.cloud(), c.made, false)
			run := i.cloud()
			run.Agreed = agreedTo(t, i, c.declared)
			runText(t, i.cloud(), c.colleague, false)
			function, arguments, _ := strings.Cut(c.declared, " ")
			_, err := tryState(t, run, function, arguments, false)
			if err == nil || !strings.Contains(err.Error(), "the plan did not show that it removes") ||
				!strings.Contains(err.Error(), c.part) {
				t.Errorf("%s: the run says %v, and a colleague added %s", c.declared, err, c.part)
			}
			if changes := runText(t, i.cloud(), c.colleague, true); changes.Len() > 0 {
				t.Errorf("%s: the run changed what the colleague made", c.declared)
			}
			run.Agreed = agreedTo(t, i, c.declared)
			runText(t, run, c.declared, false)
			if changes := runText(t, i.cloud(), c.declared, true); changes.Len() > 0 {
				t.Errorf("%s: the next run does not remove what its plan shows", c.declared)
			}
		}
	})
}

func port(list string) string {
	var all []string
	for _, p := range strings.Split(list, ", ") {
		all = append(all, "{ip_protocol: tcp, from_port: "+p+", to_port: "+p+", cidr_ip: 10.0.0.0/8}")
	}
	return strings.Join(all, ", ")
}

func elbOn(ports ...string) string {
	var all []string
	for _, p := range ports {
		all = append(all, "{elb_port: "+p+", elb_protocol: TCP}")
	}
	return "boto_elb.present {name: b, availability_zones: [us-east-1a], listeners: [" + strings.Join(all, ", ") + "]}"
}

// TestDeletionsShowWhatGoesWithThem adds parts to resources that a plan deletes: messages, subscriptions and policies.
func TestDeletionsShowWhatGoesWithThem(t *testing.T) {
	queues, topics := newQueues(0), newTopics(0)
	i := newImitation(t, queues, topics, newIAMRoles(0), oneAccount{})
	for made, add := range map[string]func(){
		"boto_sqs.present {name: q}": func() { queues.all["q"]["ApproximateNumberOfMessages"] = "1" },
		"boto_sns.present {name: q}": func() {
			t := topics.all["arn:aws:sns:us-east-1:123456789012:q"]
			t.subscriptions = append(t.subscriptions, types.Subscription{Protocol: sdk.String("sqs"), Endpoint: sdk.String("a")})
		},
		"boto_iam_role.present {name: q}": func() {
			runText(t, i.cloud(), "boto_iam_role.present {name: q, policies: {p: {Version: '2012-10-17'}}}", false)
		},
	} {
		runText(t, i.cloud(), made, false)
		absent := strings.Replace(made, "present", "absent", 1)
		run := i.cloud()
		run.Agreed = agreedTo(t, i, absent)
		add()
		function, arguments, _ := strings.Cut(absent, " ")
		if _, err := tryState(t, run, function, arguments, false); err == nil ||
			!strings.Contains(err.Error(), "it is not deleted") {
			t.Errorf("%s deletes what the plan did not show: %v", absent, err)
		}
	}
}

// TestRulesThatStayAreShownAsDeclared plans one new rule beside a rule for a group, which AWS shows by its ID.
func TestRulesThatStayAreShownAsDeclared(t *testing.T) {
	i := newImitation(t, newSecurityGroups(0))
	runText(t, i.cloud(), "boto_secgroup.present {name: web, description: d}", false)
	rules := "{ip_protocol: tcp, from_port: 80, to_port: 80, source_group_name: web}"
	runText(t, i.cloud(), "boto_secgroup.present {name: g, description: d, rules: ["+rules+"]}", false)
	changes := runText(t, i.cloud(), "boto_secgroup.present {name: g, description: d, rules: ["+rules+", "+port("22")+"]}",
		true)
	if text := value.Repr(changes); strings.Contains(text, "source_group_group_id") || !strings.Contains(text, "22") {
		t.Errorf("the plan shows a rule that stays in two ways: %s", text)
	}
}
