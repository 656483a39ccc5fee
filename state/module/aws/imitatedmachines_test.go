package aws_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	route53types "github.com/aws/aws-sdk-go-v2/service/route53/types"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module/aws"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// machineResources are resources of EC2, S3, ElastiCache and IAM whose drifts an emulator does not keep.
func machineResources() []resource {
	queue := func(rule string) string {
		return "NotificationConfiguration: {QueueConfigurations: [{QueueArn: 'arn:aws:sqs:us-east-1:123456789012:q', " +
			"Events: ['s3:ObjectCreated:*'], Filter: {Key: {FilterRules: [{Name: prefix, Value: " + rule + "}]}}}]}"
	}
	replicas := func(bucket string) string {
		return "Replication: {Role: r, Rules: [{Status: Enabled, Prefix: '', Destination: {Bucket: 'arn:aws:s3:::" +
			bucket + "'}}]}"
	}
	return []resource{
		{function: "boto_ec2.instance_present", base: "{name: halted, image_id: ami-1, instance_type: t3.micro, " +
			"target_state: stopped, ebs_optimized: false, monitoring_enabled: false}",
			drift: map[string]string{"instance_type": "instance_type: t3.large", "ebs_optimized": "ebs_optimized: true",
				"monitoring_enabled": "monitoring_enabled: true"}},
		{function: "boto_ec2.instance_present", base: "{name: reached, image_id: ami-1, allocate_eip: true}"},
		{function: "boto_ec2.volume_present", base: "{name: grown, instance_name: i, device: /dev/sdg, size: 10, " +
			"volume_type: gp2}",
			drift: map[string]string{"instance_name": "instance_name: reached", "device": "device: /dev/sdh",
				"volume_type": "volume_type: gp3"}},
		{function: "boto_ec2.private_ips_present", base: "{name: ips, network_interface_name: nic, " +
			"private_ip_addresses: [10.9.1.9]}",
			drift: map[string]string{"private_ip_addresses": "private_ip_addresses: [10.9.1.8, 10.9.1.9]"}},
		{function: "boto_s3_bucket.present", base: "{name: rules, Bucket: rules, Versioning: {Status: Enabled}, " +
			"RequestPayment: {Payer: BucketOwner}, ACL: {GrantRead: 'id=\"them\"'}, LifecycleConfiguration: [{Prefix: " +
			"logs/, Status: Enabled, Expiration: {Days: 30}}], " + queue("logs/") + ", " + replicas("one") + "}",
			drift: map[string]string{"ACL": "ACL: {GrantRead: 'id=\"them\"', GrantWrite: 'id=\"others\"'}",
				"RequestPayment":                 "RequestPayment: {Payer: Requester}",
				"NotificationConfiguration":      queue("other/"),
				"NotificationConfiguration gone": "NotificationConfiguration: {}",
				"Replication":                    replicas("two"), "Replication gone": "Replication: {}",
				"LifecycleConfiguration": "LifecycleConfiguration: [{Prefix: logs/, Status: Disabled, Expiration: {Days: 9}}]"}},
		{function: "boto_elasticache.subnet_group_present", base: "{name: Cache-Subnets, subnet_names: [sub], " +
			"description: d}",
			drift: map[string]string{"subnet_names": "subnet_names: [sub, routed]", "description": "description: e"}},
		{function: "boto_elasticache.present", base: "{name: sized, engine: memcached, cache_node_type: cache.t3.micro, " +
			"num_cache_nodes: 3, engine_version: 1.6.6, cache_subnet_group_name: cache-subnets, " +
			"cache_parameter_group_name: a, notification_topic_arn: 'arn:t', preferred_maintenance_window: " +
			"'sun:05:00-sun:09:00', security_group_ids: [sg-1]}",
			drift: map[string]string{"num_cache_nodes fewer": "num_cache_nodes: 1", "num_cache_nodes more": "num_cache_nodes: 5",
				"cache_node_type": "cache_node_type: cache.t3.small", "engine_version": "engine_version: 1.6.12",
				"cache_parameter_group_name":   "cache_parameter_group_name: b",
				"notification_topic_arn":       "notification_topic_arn: 'arn:u'",
				"preferred_maintenance_window": "preferred_maintenance_window: 'mon:05:00-mon:09:00'",
				"security_group_ids":           "security_group_ids: [sg-2]",
				"auto_minor_version_upgrade":   "auto_minor_version_upgrade: false"}},
		{function: "boto_elasticache.creategroup", base: "{name: replicas, primary_cluster_id: sized, " +
			"replication_group_description: d}",
			drift: map[string]string{"replication_group_description": "replication_group_description: e"}},
		{function: "boto_iam.group_present", base: "{name: managed, managed_policies: [own], users: [u]}",
			drift: map[string]string{"managed_policies": "managed_policies: [a, c]", "users": "users: [signs-in]"}},
	}
}

// machineStates are resources, each with the arguments of the states that make and delete it.
var machineStates = []struct{ what, made, absent string }{
	{"instance", "boto_ec2.instance_present {name: x, image_id: ami-1, allocate_eip: true}",
		"boto_ec2.instance_absent {name: x, release_eip: true}"},
	{"volume", "boto_ec2.volume_present {name: v, instance_name: kept, device: /dev/sdf, size: 1}",
		"boto_ec2.volume_absent {name: gone, volume_name: v}"},
	{"key", "boto_ec2.key_present {name: k, upload_public: ssh-ed25519 AAAA}", "boto_ec2.key_absent {name: k}"},
	{"interface", "boto_ec2.eni_present {name: n, subnet_name: sub, groups: [sg-1]}", "boto_ec2.eni_absent {name: n}"},
	{"user", "boto_iam.user_present {name: u, password: p, policies: {p: {Version: '2012-10-17'}}, managed_policies: " +
		"[own]}", "boto_iam.user_absent {name: u, delete_keys: true, delete_mfa_devices: true, delete_profile: true}"},
	{"group", "boto_iam.group_present {name: g, users: [member], policies: {p: {Version: '2012-10-17'}}}",
		"boto_iam.group_absent {name: g}"},
	{"policy", "boto_iam.policy_present {name: p, policy_document: {Version: '2012-10-17'}}",
		"boto_iam.policy_absent {name: p}"},
	{"bucket", "boto_s3_bucket.present {name: b, Bucket: b, Versioning: {Status: Enabled}, Tagging: {a: b}}",
		"boto_s3_bucket.absent {name: b, Bucket: b, Force: true}"},
	{"cluster", "boto_elasticache.present {name: c, engine: redis, num_cache_nodes: 1, cache_subnet_group_name: s}",
		"boto_elasticache.absent {name: c, wait: false}"},
	{"subnet group", "boto_elasticache.subnet_group_present {name: s, subnet_ids: [subnet-1]}",
		"boto_elasticache.subnet_group_absent {name: s}"},
}

// machineAccount is an account with what the resources of machineStates refer to, before them.
type machineAccount struct {
	*imitation
	machines *machines
	members  *iamMembers
	account  *iamAccount
	buckets  *buckets
	caches   *caches
}

func newMachineAccount(t *testing.T, reads int) *machineAccount {
	t.Helper()
	a := &machineAccount{machines: newMachines(reads), members: newIAMMembers(reads), account: newIAMAccount(reads),
		buckets: newBuckets(reads), caches: newCaches(reads)}
	a.imitation = newImitation(t, a.machines, newNetworks(0), a.members, a.account, a.buckets, a.caches, oneAccount{})
	return a
}

// prepare makes what the resources of machineStates refer to.
func (a *machineAccount) prepare(t *testing.T) {
	t.Helper()
	for _, s := range []string{"boto_vpc.present {name: net, cidr_block: 10.9.0.0/16}",
		"boto_vpc.subnet_present {name: sub, vpc_name: net, cidr_block: 10.9.1.0/24}",
		"boto_ec2.instance_present {name: kept, image_id: ami-1}", "boto_iam.user_present {name: member}",
		"boto_iam.policy_present {name: own, policy_document: {Version: '2012-10-17'}}",
		"boto_elasticache.subnet_group_present {name: s, subnet_ids: [subnet-1]}"} {
		runText(t, a.cloud(), s, false)
	}
}

// left counts the resources, apart from terminated instances.
func (a *machineAccount) left() int {
	n := len(a.machines.keys) + len(a.machines.addresses) + len(a.machines.volumes) + len(a.machines.interfaces) +
		len(a.members.all) + len(a.account.policies) + len(a.buckets.all) + len(a.caches.subnets) + len(a.caches.groups)
	for _, m := range a.machines.instances {
		if m.State.Name != "terminated" {
			n++
		}
	}
	for _, c := range a.caches.clusters {
		if *c.CacheClusterStatus != "deleting" {
			n++
		}
	}
	return n
}

// runText runs the state that a text has as its function and its arguments.
func runText(t *testing.T, cloud *aws.Cloud, text string, dry bool) *value.Map {
	t.Helper()
	function, arguments, _ := strings.Cut(text, " ")
	return runState(t, cloud, function, arguments, dry)
}

// TestThrottledMachines has AWS throttle requests that make resources, which are sent again. It takes the clock of the
// machine: on another one, the SDK waits without an end.
func TestThrottledMachines(t *testing.T) {
	a := newMachineAccount(t, 0)
	a.throttle = map[string]int{"CreateUser": 1, "CreateBucket": 1, "RunInstances": 1, "CreateCacheSubnetGroup": 1}
	var all sync.WaitGroup
	for function, arguments := range map[string]string{"boto_iam.user_present": "{name: u}",
		"boto_s3_bucket.present": "{name: b, Bucket: b}", "boto_ec2.instance_present": "{name: i, image_id: ami-1}",
		"boto_elasticache.subnet_group_present": "{name: s, subnet_ids: [subnet-1]}"} {
		all.Go(func() {
			if _, err := tryState(t, a.cloud(), function, arguments, false); err != nil {
				t.Errorf("%s: %v", function, err)
			}
		})
	}
	all.Wait()
	for name, left := range a.throttle {
		if left > 0 || a.requests[name] != 2 {
			t.Errorf("%s was sent %d times", name, a.requests[name])
		}
	}
	if n := a.left(); n != 4 {
		t.Errorf("there are %d resources", n)
	}
}

// TestAbsentMachines creates resources and deletes them while AWS does not show changes at once. A dry run only reports
// the deletion, and a second run changes nothing.
func TestAbsentMachines(t *testing.T) {
	for _, reads := range []int{0, 2} {
		a := newMachineAccount(t, reads)
		synctest.Test(t, func(t *testing.T) {
			a.prepare(t)
			for _, s := range machineStates {
				a.absent(t, s.what, s.made, s.absent)
			}
		})
	}
}

func (a *machineAccount) absent(t *testing.T, what, made, absent string) {
	t.Helper()
	if changes := runText(t, a.cloud(), absent, true); changes.Len() > 0 && what != "subnet group" {
		t.Errorf("the deletion of a missing %s changes %s", what, value.Repr(changes))
	}
	before := a.left()
	runText(t, a.cloud(), made, false)
	if changes := runText(t, a.cloud(), made, false); changes.Len() > 0 {
		t.Errorf("a second run for the %s changes %s", what, value.Repr(changes))
	}
	if u := a.members.all["user u"]; u != nil {
		u.keys, u.devices = []string{"k1", "k2", "k3"}, []string{"d1", "d2", "d3"}
	}
	if b := a.buckets.all["b"]; b != nil {
		b.versions = slices.Repeat([]s3types.ObjectVersion{{Key: sdk.String("k"), VersionId: sdk.String("v")}}, 5)
	}
	there := a.left()
	if changes := runText(t, a.cloud(), absent, true); changes.Value("old") == nil || a.left() != there {
		t.Errorf("a dry run of the deletion of the %s says %s, and leaves %d of %d", what, value.Repr(changes), a.left(),
			there)
	}
	runText(t, a.cloud(), absent, false)
	if n := a.left(); n != before && what != "subnet group" {
		t.Errorf("the deletion of the %s leaves %d, want %d", what, n, before)
	}
	if changes := runText(t, a.cloud(), absent, false); changes.Len() > 0 {
		t.Errorf("a second deletion of the %s changes %s", what, value.Repr(changes))
	}
	if what != "cluster" { // whose deletion goes on
		runText(t, a.cloud(), made, false)
		runText(t, a.cloud(), absent, false)
	}
}

// TestPartialFailuresOfMachines has AWS refuse a request in the middle. The report lists the requests that were sent,
// and the next run sends the others.
func TestPartialFailuresOfMachines(t *testing.T) {
	a := newMachineAccount(t, 1)
	synctest.Test(t, func(t *testing.T) {
		a.prepare(t)
		for _, c := range []struct{ state, refused, done, once string }{
			{"boto_iam.user_present {name: x, managed_policies: [own], policies: {p: {Version: '2012-10-17'}}}",
				"AttachUserPolicy", "['user made', 'policy p set']", "CreateUser PutUserPolicy"},
			{"boto_iam.group_present {name: y, users: [member], policies: {p: {Version: '2012-10-17'}}}",
				"AddUserToGroup", "['group made', 'policy p set']", "CreateGroup PutGroupPolicy"},
			{"boto_s3_bucket.present {name: z, Bucket: z, Versioning: {Status: Enabled}, Tagging: {a: b}}",
				"PutBucketTagging", "['bucket made', 'Versioning set']", "CreateBucket PutBucketVersioning"},
			{"boto_ec2.instance_present {name: w, image_id: ami-1, allocate_eip: true}", "AllocateAddress",
				"['instance made']", "RunInstances"},
			{"boto_ec2.volume_present {name: v, instance_name: kept, device: /dev/sdf, size: 1}", "AttachVolume",
				"['volume made']", "CreateVolume"},
		} {
			a.refuse = map[string]string{c.refused: "LimitExceeded"}
			function, arguments, _ := strings.Cut(c.state, " ")
			changes, err := tryState(t, a.cloud(), function, arguments, false)
			if err == nil || !strings.Contains(err.Error(), c.refused+": LimitExceeded") ||
				value.Repr(changes.Value("done")) != c.done {
				t.Errorf("%s: the request is refused with %v, after %s", function, err, value.Repr(changes))
			}
			a.refuse, a.requests = nil, map[string]int{}
			if again := runText(t, a.cloud(), c.state, false); again.Len() == 0 {
				t.Errorf("%s: the next run changes nothing", function)
			}
			for name := range strings.FieldsSeq(c.once) {
				if a.requests[name] > 0 {
					t.Errorf("%s: the next run sends %s again", function, name)
				}
			}
			if again := runText(t, a.cloud(), c.state, false); again.Len() > 0 {
				t.Errorf("%s: another run changes %s", function, value.Repr(again))
			}
		}
	})
}

// TestListsThatLagAreNoErrors runs states again for users, groups and buckets that lists do not show yet.
func TestListsThatLagAreNoErrors(t *testing.T) {
	a := newMachineAccount(t, 0)
	synctest.Test(t, func(t *testing.T) {
		a.prepare(t)
		user, group := "boto_iam.user_present {name: x, password: p, policies: {p: {Version: '2012-10-17'}}}",
			"boto_iam.group_present {name: y, users: [x]}"
		for _, s := range []string{user, group} {
			runText(t, a.cloud(), s, false)
		}
		for _, m := range a.members.all {
			m.unlisted = lag{1}
		}
		runText(t, a.cloud(), user, false)
		runText(t, a.cloud(), group, false)
		if x := a.members.all["user x"]; !x.signsIn || fmt.Sprint(x.groups) != "[y]" {
			t.Errorf("the user is %+v", x)
		}
		cloud := a.cloud() // one run, which makes the policy and attaches it
		a.account.lag = 2
		runText(t, cloud, "boto_iam.policy_present {name: late, policy_document: {Version: '2012-10-17'}}", false)
		runText(t, cloud, "boto_iam.user_present {name: x, managed_policies: [late]}", false)
		if got := fmt.Sprint(a.members.all["user x"].attached); got != "["+policyARNs+"late]" {
			t.Errorf("the user has %s", got)
		}
	})
}

// TestSubnetsOfOtherVPCs makes subnets and instances by names that another VPC has, too. Without a VPC, the name is an
// error.
func TestSubnetsOfOtherVPCs(t *testing.T) {
	a := newMachineAccount(t, 0)
	networks := newNetworks(0)
	a.services = append([]service{networks}, a.services...)
	synctest.Test(t, func(t *testing.T) {
		for n, vpc := range []string{"net", "net2"} {
			runText(t, a.cloud(), fmt.Sprintf("boto_vpc.present {name: %s, cidr_block: 10.%d.0.0/16}", vpc, n), false)
			state := fmt.Sprintf("boto_vpc.subnet_present {name: sub, vpc_name: %s, cidr_block: 10.%d.1.0/24}", vpc, n)
			if made := runText(t, a.cloud(), state, false); made.Value("new") == nil {
				t.Errorf("no subnet is made in %s: %s", vpc, value.Repr(made))
			}
			if again := runText(t, a.cloud(), state, false); again.Len() > 0 {
				t.Errorf("a second run changes %s", value.Repr(again))
			}
		}
		for _, vpc := range []string{"net", "net2"} {
			runText(t, a.cloud(), "boto_ec2.instance_present {name: of-"+vpc+", image_id: ami-1, subnet_name: sub, vpc_name: "+
				vpc+"}", false)
			runText(t, a.cloud(), "boto_vpc.route_table_present {name: ways-"+vpc+", vpc_name: "+vpc+
				", subnet_names: [sub]}", false)
		}
		var vpcs []string
		for _, m := range sortedBy(a.machines.instances) {
			vpcs = append(vpcs, *networks.subnets[*m.SubnetId].VpcId)
		}
		slices.Sort(vpcs)
		if len(slices.Compact(vpcs)) != 2 {
			t.Errorf("the instances are in %v", vpcs)
		}
		for function, arguments := range map[string]string{"boto_vpc.subnet_absent": "name: sub",
			"boto_ec2.instance_present":             "name: x, image_id: ami-1, subnet_name: sub",
			"boto_elasticache.subnet_group_present": "name: x, subnet_names: [sub]"} {
			if _, err := tryState(t, a.cloud(), function, "{"+arguments+"}", true); err == nil ||
				!strings.Contains(err.Error(), "2 subnets are named sub") || diag.HintOf(err) == "" {
				t.Errorf("%s takes one of two subnets: %v", function, err)
			}
		}
	})
}

// TestVolumesOfTheRunAreTagged plans tags of volumes that the run makes or attaches, and of those of an instance that
// it makes, and compares the plan with the run.
func TestVolumesOfTheRunAreTagged(t *testing.T) {
	a := newMachineAccount(t, 1)
	synctest.Test(t, func(t *testing.T) {
		a.prepare(t)
		volume := "boto_ec2.volume_present {name: v, instance_name: kept, device: /dev/sdf, size: 1, volume_type: gp3}"
		for filters, want := range map[string]bool{"instance_name: kept": true, "'tag:Name': v": true,
			"instance_name: kept, 'attachment.device': '/dev/sd*'": true, "volume-type: [gp2, gp3]": true,
			"instance_name: other": false, "size: 2": false, "status: available": false} {
			state := "boto_ec2.volumes_tagged {name: t, tag_maps: [{filters: {" + filters + "}, tags: {role: data}}]}"
			plan := a.cloud()
			runText(t, plan, volume, true)
			if got := value.Repr(runText(t, plan, state, true)); strings.Contains(got, "tags of volume v") != want {
				t.Errorf("the plan for {%s} is %s", filters, got)
			}
		}
		state := "boto_ec2.volumes_tagged {name: t, tag_maps: [{filters: {instance_name: kept}, tags: {role: data}}]}"
		run := a.cloud()
		runText(t, run, volume, false)
		runText(t, run, state, false)
		if again := runText(t, a.cloud(), state, false); again.Len() > 0 {
			t.Errorf("a second run changes %s", value.Repr(again))
		}
		if tags := fmt.Sprint(len(sortedBy(a.machines.volumes)[0].Tags)); tags != "2" {
			t.Errorf("the volume has %s tags", tags)
		}
		plan := a.cloud()
		runText(t, plan, "boto_ec2.instance_present {name: new, image_id: ami-1}", true)
		got := runText(t, plan, strings.Replace(state, "kept", "new", 1), true)
		if !strings.Contains(value.Repr(got), "tags of the volumes of instance new") {
			t.Errorf("the plan for the volumes of a new instance is %s", value.Repr(got))
		}
	})
}

// TestFilesOfKeysDoNotCollide makes keys whose names differ only in characters that files cannot have, and two keys of
// one name.
func TestFilesOfKeysDoNotCollide(t *testing.T) {
	h, err := host.Open(host.Options{}, host.Caches{})
	if err != nil {
		t.Fatal(err)
	}
	a, dir := newMachineAccount(t, 0), t.TempDir()
	check := func(cloud *aws.Cloud, name, region string) error {
		r := decoded(t, cloud, "boto_ec2.key_present", "{name: '"+name+"', save_path: "+dir+", region: "+region+"}")
		diff, err := r.Check(t.Context(), h)
		if err == nil && !diff.Empty() {
			_, err = r.Apply(t.Context(), h, diff)
		}
		return err
	}
	names := []string{"a/b", "c/b", "b", "a_b", "a%2Fb"}
	for _, name := range names {
		if err := check(a.cloud(), name, "us-east-1"); err != nil {
			t.Errorf("the key %s: %v", name, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.pem"))
	if err != nil || len(files) != len(names) {
		t.Errorf("the files are %v, %v", files, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "a%2Fb.pem")); err != nil || string(text) != "the private half of a/b" {
		t.Errorf("the file of a/b has %q, %v", text, err)
	}
	a.machines.keys = map[string]bool{}
	if err := check(a.cloud(), "b", "us-east-1"); err == nil || len(a.machines.keys) > 0 ||
		!strings.Contains(err.Error(), "exists, and is not replaced") {
		t.Errorf("a key whose file exists is made: %v", err)
	}
	plan := a.cloud()
	for n, region := range []string{"us-east-1", "eu-west-1"} {
		r := decoded(t, plan, "boto_ec2.key_present", "{name: two, save_path: "+dir+", region: "+region+"}")
		if _, err := r.Check(t.Context(), h); (err != nil) != (n == 1) {
			t.Errorf("the plan of the key of %s: %v", region, err)
		}
	}
}

// TestBucketsThatAreOpenToAll checks the hint for an ACL that AWS refuses, because it blocks what opens new buckets to
// all, and for the bucket of another account.
func TestBucketsThatAreOpenToAll(t *testing.T) {
	a := newMachineAccount(t, 0)
	for arguments, hint := range map[string]string{"{name: b, Bucket: b, ACL: {ACL: public-read}}": "public access block",
		"{name: o, Bucket: of-others}": "choose another one"} {
		_, err := tryState(t, a.cloud(), "boto_s3_bucket.present", arguments, false)
		if err == nil || !strings.Contains(diag.HintOf(err), hint) {
			t.Errorf("%s: %v, hint: %s", arguments, err, diag.HintOf(err))
		}
	}
}

// TestZonesWithRecordsAreNotDeleted plans the deletion of a zone with records, which AWS would refuse: it is an error,
// unless the run deletes the records before it.
func TestZonesWithRecordsAreNotDeleted(t *testing.T) {
	zones := newZones(0)
	i := newImitation(t, zones)
	runState(t, i.cloud(), "boto_route53.hosted_zone_present", "{name: example.com}", false)
	for n := range 3 {
		runState(t, i.cloud(), "boto_route53.present",
			fmt.Sprintf("{name: r%d.example.com, zone: example.com, record_type: A, value: 10.0.0.1, ttl: 60}", n), false)
	}
	zone := sortedBy(zones.all)[0]
	for _, kind := range []string{"NS", "SOA"} { // Route 53 made them
		zone.sets = append([]route53types.ResourceRecordSet{{Name: sdk.String("example.com."),
			Type: route53types.RRType(kind)}}, zone.sets...)
	}
	absent := func(cloud *aws.Cloud, n int, dry bool) {
		runState(t, cloud, "boto_route53.absent",
			fmt.Sprintf("{name: r%d.example.com, zone: example.com, record_type: A}", n), dry)
	}
	plan := i.cloud()
	absent(plan, 0, true)
	_, err := tryState(t, plan, "boto_route53.hosted_zone_absent", "{name: example.com}", true)
	if err == nil || !strings.Contains(err.Error(), "2 records") || !strings.Contains(err.Error(), "A r1.example.com.") ||
		!strings.Contains(diag.HintOf(err), "boto_route53.absent") {
		t.Errorf("a zone with records: %v, hint: %s", err, diag.HintOf(err))
	}
	absent(plan, 1, true)
	absent(plan, 2, true)
	if changes := runState(t, plan, "boto_route53.hosted_zone_absent", "{name: example.com}", true); changes.Len() == 0 {
		t.Error("a zone whose records the run deletes is not deleted")
	}
	for n := range 3 {
		absent(i.cloud(), n, false)
	}
	zone.sets = nil // the imitation does not delete those that it made
	if runState(t, i.cloud(), "boto_route53.hosted_zone_absent", "{name: example.com}", false); len(zones.all) > 0 {
		t.Error("an empty zone is not deleted")
	}
}

// TestMisspeltAttributesOfQueues checks the warnings for attributes that a queue does not have or that AWS sets.
func TestMisspeltAttributesOfQueues(t *testing.T) {
	cloud := newImitation(t, newQueues(0)).cloud()
	r := decoded(t, cloud, "boto_sqs.present", "{name: q, attributes: {DelaySecond: 3, VisibilityTimeout: 60, "+
		"QueueArn: x, RedrivePolicy: {}, KmsMasterKeyId: k}}")
	diff, err := r.Check(t.Context(), nil)
	want := []string{`attributes has DelaySecond, which is none that a queue takes: did you mean "DelaySeconds"?`,
		"attributes has QueueArn, which is none that a queue takes"}
	if err != nil || !slices.Equal(diff.Warnings, want) {
		t.Errorf("the warnings are %q, %v; want %q", diff.Warnings, err, want)
	}
}

// TestPrimariesOfReplicationGroups checks that a replication group needs a cluster, that the group waits until the new
// cluster can be used, and that AWS's refusal to delete the cluster of a group ends the run at once.
func TestPrimariesOfReplicationGroups(t *testing.T) {
	a := newMachineAccount(t, 2)
	synctest.Test(t, func(t *testing.T) {
		const group = "{name: g, primary_cluster_id: c, replication_group_description: d}"
		if _, err := tryState(t, a.cloud(), "boto_elasticache.creategroup", group, true); err == nil ||
			!strings.Contains(err.Error(), "there is no cache cluster c") {
			t.Errorf("a group without its cluster: %v", err)
		}
		cloud := a.cloud()
		runText(t, cloud, "boto_elasticache.present {name: c, engine: redis, num_cache_nodes: 1}", false)
		runText(t, cloud, "boto_elasticache.creategroup "+group, false)
		began := time.Now()
		if _, err := tryState(t, a.cloud(), "boto_elasticache.absent", "{name: c}", false); err == nil ||
			time.Since(began) > time.Minute {
			t.Errorf("after %v, the deletion of the cluster of a group ends with %v", time.Since(began), err)
		}
		runText(t, a.cloud(), "boto_elasticache.replication_group_absent {name: g}", false)
	})
}
