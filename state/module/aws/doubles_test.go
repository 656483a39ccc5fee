package aws_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module/aws"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestNamesThatSeveralResourcesHave makes a second resource of a name, as a lost answer or another account's person may
// do. All states that would use, change or delete one of both refuse that, and name both.
func TestNamesThatSeveralResourcesHave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		machines, nets, zones := newMachines(0), newNetworks(0), newZones(0)
		i := newImitation(t, machines, nets, zones, newSecurityGroups(0), oneAccount{})
		for _, s := range []string{"boto_vpc.present {name: net, cidr_block: 10.9.0.0/16}",
			"boto_vpc.present {name: net2, cidr_block: 10.8.0.0/16}",
			"boto_vpc.subnet_present {name: sub, vpc_name: net, cidr_block: 10.9.1.0/24}",
			"boto_vpc.internet_gateway_present {name: x}", "boto_vpc.route_table_present {name: x, vpc_name: net}",
			"boto_vpc.dhcp_options_present {name: x, vpc_name: net2, domain_name: a.example}",
			"boto_vpc.nat_gateway_present {name: x, subnet_name: sub}",
			"boto_vpc.vpc_peering_connection_present {name: x, requester_vpc_name: net, peer_vpc_name: net2}",
			"boto_ec2.instance_present {name: x, image_id: ami-1}",
			"boto_ec2.eni_present {name: x, subnet_name: sub, groups: [sg-1]}",
			"boto_ec2.volume_present {name: x, instance_name: x, device: /dev/sdf, size: 1}",
			"boto_route53.hosted_zone_present {name: x.example}"} {
			runText(t, i.cloud(), s, false)
		}
		kept := sortedKeys(machines.instances)[0]
		double(nets.gateways, func(v *types.InternetGateway, id *string) { v.InternetGatewayId = id })
		double(nets.tables, func(v *types.RouteTable, id *string) { v.RouteTableId = id })
		double(nets.options, func(v *types.DhcpOptions, id *string) { v.DhcpOptionsId = id })
		double(nets.nats, func(v *natGateway, id *string) { v.NatGatewayId = id })
		double(nets.peers, func(v *types.VpcPeeringConnection, id *string) { v.VpcPeeringConnectionId = id })
		double(nets.subnets, func(v *types.Subnet, id *string) { v.SubnetId = id })
		double(machines.instances, func(v *machine, id *string) { v.InstanceId = id })
		double(machines.interfaces, func(v *types.NetworkInterface, id *string) { v.NetworkInterfaceId = id })
		double(machines.volumes, func(v *machineVolume, id *string) { v.VolumeId = id })
		double(zones.all, func(v *dnsZone, id *string) { v.Id = id })
		for _, s := range []string{"boto_vpc.internet_gateway_absent {name: x}",
			"boto_vpc.internet_gateway_present {name: x, vpc_id: vpc-1}", "boto_vpc.route_table_absent {name: x}",
			"boto_vpc.route_table_present {name: x, vpc_id: vpc-1}", "boto_vpc.dhcp_options_absent {name: x}",
			"boto_vpc.dhcp_options_present {name: x, vpc_id: vpc-1, domain_name: a.example}",
			"boto_vpc.subnet_absent {name: sub}",
			"boto_vpc.vpc_peering_connection_absent {name: x}", "boto_vpc.accept_vpc_peering_connection {name: x}",
			"boto_ec2.instance_absent {name: x}", "boto_ec2.instance_present {name: x, image_id: ami-1}",
			"boto_ec2.snapshot_created {name: x, ami_name: y, instance_name: x}",
			"boto_ec2.eni_absent {name: x}", "boto_ec2.volume_absent {name: y, volume_name: x}",
			"boto_ec2.volume_present {name: x, instance_id: " + kept + ", device: /dev/sdf, size: 1}",
			"boto_route53.hosted_zone_absent {name: x.example}",
			"boto_route53.hosted_zone_present {name: x.example, comment: c}",
			"boto_route53.present {name: a.x.example, zone: x.example, record_type: A, value: 192.0.2.1}",
			"boto_route53.absent {name: a.x.example, zone: x.example, record_type: A}"} {
			refusesDouble(t, i, s)
		}
		double(nets.vpcs, func(v *network, id *string) { v.VpcId, v.IsDefault = id, nil })
		for _, s := range []string{"boto_vpc.absent {name: net}", "boto_vpc.present {name: net, cidr_block: 10.9.0.0/16}",
			"boto_vpc.subnet_present {name: new, vpc_name: net, cidr_block: 10.9.7.0/24}",
			"boto_vpc.internet_gateway_present {name: new, vpc_name: net}",
			"boto_secgroup.present {name: new, vpc_name: net, description: d}",
			"boto_vpc.subnet_absent {name: sub, vpc_name: net}"} {
			refusesDouble(t, i, s)
		}
		runText(t, i.cloud(), "boto_vpc.absent {name: net, vpc_id: double-of-vpc-n001}", true)
		runText(t, i.cloud(), "boto_route53.present {name: a.x.example, zone: Z001, record_type: A, value: 192.0.2.1}", false)
	})
}

// double adds a copy of each resource with another ID.
func double[T any](all map[string]*T, set func(v *T, id *string)) {
	for id, v := range maps.Clone(all) {
		other := *v
		second := "double-of-" + id
		set(&other, &second)
		all[second] = &other
	}
}

func refusesDouble(t *testing.T, i *imitation, state string) {
	t.Helper()
	function, arguments, _ := strings.Cut(state, " ")
	_, err := tryState(t, i.cloud(), function, arguments, true)
	if err == nil || !strings.Contains(err.Error(), "are named ") || !strings.Contains(err.Error(), "double-of-") ||
		!strings.Contains(diag.HintOf(err), "delete the one that is not meant by its ID") {
		t.Errorf("%s takes one of two resources of the name: %v, hint: %s", state, err, diag.HintOf(err))
	}
}

// TestTemplatesRefuseDoubles asks for the ID of a VPC of which there are two.
func TestTemplatesRefuseDoubles(t *testing.T) {
	nets := newNetworks(0)
	i := newImitation(t, nets)
	runText(t, i.cloud(), "boto_vpc.present {name: net, cidr_block: 10.9.0.0/16}", false)
	double(nets.vpcs, func(v *network, id *string) { v.VpcId, v.IsDefault = id, nil })
	for function, arguments := range map[string]*value.Map{"boto_vpc.get_id": value.NewMap("name", "net"),
		"boto_vpc.describe":          value.NewMap("vpc_name", "net"),
		"boto_vpc.get_resource_id":   value.NewMap("resource", "vpc", "name", "net"),
		"boto_secgroup.get_group_id": value.NewMap("name", "g", "vpc_name", "net")} {
		got, err := aws.Reading(i.cloud()).Call(context.Background(), function, nil, arguments)
		if err == nil || !strings.Contains(err.Error(), "double-of-") {
			t.Errorf("%s answers %v, %v, and two VPCs have the name", function, got, err)
		}
	}
}

// TestImagesOfOthers gives an image by its name, which another account uses for an image that it shares with all.
func TestImagesOfOthers(t *testing.T) {
	machines := newMachines(0)
	theirs := func(id string) types.Image {
		return types.Image{ImageId: &id, Name: sdk.String("base"), OwnerId: sdk.String("666666666666"),
			CreationDate: sdk.String("2099-01-01")}
	}
	machines.theirs = []types.Image{theirs("ami-theirs")}
	i := newImitation(t, machines)
	instance := "{name: x, image_name: base}"
	if _, err := tryState(t, i.cloud(), "boto_ec2.instance_present", instance, true); err == nil ||
		!strings.Contains(diag.HintOf(err), "image_owners") {
		t.Errorf("an image of another account is taken: %v", err)
	}
	machines.images["base"] = &types.Image{ImageId: sdk.String("ami-own"), OwnerId: sdk.String("123456789012")}
	shows := func(arguments, image, owner string) {
		t.Helper()
		changes := value.Repr(runState(t, i.cloud(), "boto_ec2.instance_present", arguments, true))
		if !strings.Contains(changes, image) || !strings.Contains(changes, owner) {
			t.Errorf("the plan of %s shows %s, want the image %s of %s", arguments, changes, image, owner)
		}
	}
	shows(instance, "ami-own", "123456789012")
	shows("{name: x, image_name: base, image_owners: ['666666666666']}", "ami-theirs", "666666666666")
	machines.theirs = append(machines.theirs, theirs("ami-second"))
	_, err := tryState(t, i.cloud(), "boto_ec2.instance_present", "{name: x, image_name: base, image_owners: "+
		"['666666666666']}", true)
	if err == nil || !strings.Contains(err.Error(), "ami-theirs, ami-second") {
		t.Errorf("one of two images is taken: %v", err)
	}
}

// TestRequestsForInstancesHaveTokens has two instances made in a run, and one again in another run: only the requests
// for one instance in one run have one token.
func TestRequestsForInstancesHaveTokens(t *testing.T) {
	machines := newMachines(0)
	i := newImitation(t, machines)
	run := i.cloud()
	for _, s := range []string{"boto_ec2.instance_present {name: a, image_id: ami-1}",
		"boto_ec2.instance_present {name: b, image_id: ami-1}"} {
		runText(t, run, s, false)
	}
	for _, m := range machines.instances {
		m.Tags = nil
	}
	runText(t, run, "boto_ec2.instance_present {name: a, image_id: ami-1}", false) // the answer of the first was lost
	runText(t, i.cloud(), "boto_ec2.instance_present {name: b, image_id: ami-1}", false)
	got := machines.tokens
	if len(got) != 4 || got[0] != got[2] || len(got[0]) > 64 ||
		len(slices.Compact(slices.Sorted(slices.Values(got)))) != 3 {
		t.Errorf("the tokens are %q", got)
	}
}

// TestBucketsOfOthers takes no bucket of another account for one of its own, even if everyone may read and change it.
func TestBucketsOfOthers(t *testing.T) {
	buckets := newBuckets(0)
	i := newImitation(t, buckets, oneAccount{})
	bucket := "{name: shop, Bucket: shop, Versioning: {Status: Enabled}}"
	runState(t, i.cloud(), "boto_s3_bucket.present", bucket, false)
	if i.requests["GetCallerIdentity"] != 1 {
		t.Errorf("a run asks %d times for the account", i.requests["GetCallerIdentity"])
	}
	buckets.all["shop"].owner = "666666666666"
	for _, function := range []string{"boto_s3_bucket.present", "boto_s3_bucket.absent"} {
		if _, err := tryState(t, i.cloud(), function, "{name: shop, Bucket: shop}", false); err == nil ||
			!strings.Contains(err.Error(), "belongs to another account") {
			t.Errorf("%s takes a bucket of another account: %v", function, err)
		}
	}
}
