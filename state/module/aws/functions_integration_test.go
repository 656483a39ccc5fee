//go:build integration

package aws_test

import (
	"context"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module/aws"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestTemplateFunctions calls each function of templates for an existing and for a missing resource.
func TestTemplateFunctions(t *testing.T) {
	url := emulator(t)
	for _, s := range [][2]string{
		{"boto_route53.hosted_zone_present", "{name: example.com, domain_name: example.com.}"},
		{"boto_route53.present", "{name: www.example.com., zone: example.com., record_type: A, value: 10.0.0.1, ttl: 60}"},
		{"boto_secgroup.present", "{name: there, description: d}"},
		{"boto_elb.present", "{name: there, availability_zones: [us-east-1a], listeners: [{elb_port: 80, elb_protocol: " +
			"HTTP}], health_check: {target: 'TCP:80'}}"},
		{"boto_iam_role.present", "{name: there}"}, {"boto_iam.user_present", "{name: there}"},
		{"boto_iam.group_present", "{name: there}"},
		{"boto_sqs.present", "{name: there}"}, {"boto_s3_bucket.present", "{name: b, Bucket: there}"},
		{"boto_vpc.present", "{name: there, cidr_block: 10.9.0.0/16}"},
		{"boto_vpc.subnet_present", "{name: there, vpc_name: there, cidr_block: 10.9.1.0/24}"},
		{"boto_vpc.route_table_present", "{name: there, vpc_name: there}"},
		{"boto_dynamodb.present", "{name: there, hash_key: id, hash_key_data_type: S}"},
		{"boto_elasticache.present", "{name: there, engine: redis, cache_node_type: cache.t3.micro, num_cache_nodes: 1}"},
		{"boto_ec2.instance_present", "{name: there, image_id: ami-03cf127a, instance_type: t2.micro}"},
		{"boto_cloudwatch_alarm.present", "{name: there, attributes: {" + alarmAttributes + "}}"},
		{"boto_asg.present", "{name: there, launch_config_name: there, launch_config: [{image_id: ami-03cf127a, " +
			"instance_type: t2.micro}], availability_zones: [us-east-1a], min_size: 1, max_size: 1}"},
	} {
		state(t, url, s[0], s[1], false)
	}
	table := aws.Reading(&aws.Cloud{Endpoint: url})
	for _, q := range []struct{ function, argument, there, gone string }{
		{"boto_secgroup.exists", "name", "True", "False"}, {"boto_elb.exists", "name", "True", "False"},
		{"boto_elb.get_health_check", "name", "'target'", "{}"}, {"boto_elb.get_instance_health", "name", "[]", "[]"},
		{"boto_vpc.exists", "name", "{'exists': True}", "{'exists': False}"},
		{"boto_vpc.subnet_exists", "name", "{'exists': True}", "{'exists': False}"},
		{"boto_vpc.route_table_exists", "name", "{'exists': True}", "{'exists': False}"},
		{"boto_vpc.describe", "vpc_name", "'cidr_block': '10.9.0.0/16'", "{'vpc': None}"},
		{"boto_vpc.describe_subnets", "subnet_names", "10.9.1.0/24", "{'subnets': []}"},
		{"boto_iam.describe_role", "name", "'role_name': 'there'", "False"},
		{"boto_iam.instance_profile_exists", "name", "True", "False"},
		{"boto_iam.get_user", "user_name", "'user_name': 'there'", "False"},
		{"boto_iam.get_group", "group_name", "'group_name': 'there'", "False"},
		{"boto_sqs.exists", "name", "True", "False"}, {"boto_s3_bucket.exists", "Bucket", "{'exists': True}",
			"{'exists': False}"},
		{"boto_dynamodb.exists", "table_name", "True", "False"},
		{"boto_dynamodb.describe", "table_name", "'TableName': 'there'", "{}"},
		{"boto_elasticache.exists", "name", "True", "False"}, {"boto_elasticache.get_config", "name", "'engine': 'redis'",
			"{}"},
		{"boto_ec2.exists", "name", "True", "False"}, {"boto_ec2.find_instances", "name", "['i-", "[]"},
		{"boto_ec2.get_id", "name", "'i-", "None"},
		{"boto_cloudwatch.get_alarm", "name", "'metric': 'CPUUtilization'", "None"},
		{"boto_asg.exists", "name", "True", "False"}, {"boto_asg.get_config", "name", "'min_size': 1", "{}"},
		{"boto_asg.get_instances", "name", "['10.", "[]"}, {"boto_asg.launch_configuration_exists", "name", "True", "False"},
	} {
		for name, want := range map[string]string{"there": q.there, "gone": q.gone} {
			v, err := table.Call(context.Background(), q.function, nil, value.NewMap(q.argument, name))
			if got := value.Repr(v); err != nil || !strings.Contains(got, want) {
				t.Errorf("%s of a resource that is %s gives %s, %v; want %s", q.function, name, got, err, want)
			}
		}
	}
	for name, want := range map[string]string{"www.example.com.": "10.0.0.1", "no.example.com.": "None"} {
		v, err := table.Call(context.Background(), "boto_route53.get_record", nil,
			value.NewMap("name", name, "zone", "example.com.", "record_type", "A"))
		if err != nil || !strings.Contains(value.Repr(v), want) {
			t.Errorf("the record %s is %s, %v", name, value.Repr(v), err)
		}
	}
}

// TestAbsence deletes each kind of resource. A dry run reports the deletion, a run makes it, and the next run changes
// nothing.
func TestAbsence(t *testing.T) {
	url := emulator(t)
	state(t, url, "boto_ec2.instance_present", "{name: i, image_id: ami-03cf127a, instance_type: t2.micro}", false)
	for _, s := range [][3]string{
		{"boto_secgroup.present", "{name: a, description: d}", "boto_secgroup.absent"},
		{"boto_iam_role.present", "{name: a, policies: {p: {Version: '2012-10-17', Statement: [{Action: 's3:*', Effect: " +
			"Allow, Resource: '*'}]}}}", "boto_iam_role.absent"},
		{"boto_iam.user_present", "{name: a}", "boto_iam.user_absent"},
		{"boto_iam.group_present", "{name: a}", "boto_iam.group_absent"},
		{"boto_sqs.present", "{name: a}", "boto_sqs.absent"}, {"boto_sns.present", "{name: a}", "boto_sns.absent"},
		{"boto_dynamodb.present", "{name: a, hash_key: id, hash_key_data_type: S}", "boto_dynamodb.absent"},
		{"boto_elasticache.present", "{name: a, engine: redis, cache_node_type: cache.t3.micro, num_cache_nodes: 1}",
			"boto_elasticache.absent"},
		{"boto_vpc.present", "{name: net, cidr_block: 10.9.0.0/16}", ""},
		{"boto_vpc.subnet_present", "{name: sub, vpc_name: net, cidr_block: 10.9.1.0/24}", ""},
		{"boto_secgroup.present", "{name: inner, description: d, vpc_name: net}", ""},
		{"boto_vpc.nat_gateway_present", "{name: a, subnet_name: sub}",
			"boto_vpc.nat_gateway_absent {name: a, subnet_name: sub}"},
		{"boto_vpc.present", "{name: net2, cidr_block: 10.10.0.0/16}", ""},
		{"boto_vpc.dhcp_options_present", "{name: unused, vpc_name: net2, domain_name: a.example}", ""},
		{"boto_vpc.dhcp_options_present", "{name: a, vpc_name: net2, domain_name: example.com}", ""},
		{"boto_vpc.dhcp_options_present", "{name: unused, vpc_name: net2}", ""},
		{"boto_vpc.dhcp_options_present", "{name: a, vpc_name: net, domain_name: example.com}", ""},
		{"boto_vpc.vpc_peering_connection_present", "{name: a, requester_vpc_name: net, peer_vpc_name: net2}",
			"boto_vpc.vpc_peering_connection_absent"},
		{"boto_iam.server_cert_present", "{name: a, public_key: '-----BEGIN CERTIFICATE-----', private_key: '-----BEGIN " +
			"PRIVATE KEY-----'}", "boto_iam.server_cert_absent"},
		{"boto_iam.user_present", "{name: a, password: A-long-Pass-word-1}", "boto_iam.user_absent"},
		{"boto_ec2.eni_present", "{name: a, subnet_name: sub, groups: [inner]}", "boto_ec2.eni_absent"},
		{"boto_ec2.volume_present", "{name: a, volume_name: a, instance_name: i, device: /dev/sdf, size: 1}",
			"boto_ec2.volume_absent {name: a, volume_name: a}"},
		{"boto_ec2.key_present",
			"{name: a, upload_public: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFbOJbI0r6qtWnmkuxefmL1+NyGO52mEvk6589rXTFLo}",
			"boto_ec2.key_absent"},
		{"boto_s3_bucket.present", "{name: a, Bucket: a-bucket}", "boto_s3_bucket.absent {name: a, Bucket: a-bucket}"},
		{"boto_ec2.instance_present", "{name: a, image_id: ami-03cf127a, instance_type: t2.micro}",
			"boto_ec2.instance_absent"},
		{"boto_elb.present", "{name: a, availability_zones: [us-east-1a], listeners: [{elb_port: 80, elb_protocol: HTTP}]}",
			"boto_elb.absent"},
		{"boto_cloudwatch_alarm.present", "{name: a, attributes: {" + alarmAttributes + "}}", "boto_cloudwatch_alarm.absent"},
	} {
		state(t, url, s[0], s[1], false)
		function, arguments, given := strings.Cut(s[2], " ")
		if !given {
			arguments = "{name: a}"
		}
		if function == "" {
			continue
		}
		planned := state(t, url, function, arguments, true)
		if planned.Len() == 0 || planned.Value("new") != nil {
			t.Errorf("%s plans %s", function, value.Repr(planned))
		}
		state(t, url, function, arguments, false)
		if again := state(t, url, function, arguments, false); again.Len() > 0 {
			t.Errorf("%s: another run changes %s", function, value.Repr(again))
		}
	}
}
