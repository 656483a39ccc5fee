// Package network has the states boto_vpc and boto_secgroup: VPCs, subnets, route tables, gateways, DHCP options,
// peering connections and security groups. Other packages use it to find networks and security groups.
package network

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// VPCTable returns the state functions of boto_vpc.
func VPCTable(c *cloud.Cloud) module.Table {
	of := func(kind string, absent bool) func() module.Resource {
		return func() module.Resource {
			n := NetResource{Common: cloud.Common{Cloud: c}, Kind: kind, Tenancy: "default"}
			if absent {
				return &netAbsent{n}
			}
			return &netPresent{n}
		}
	}
	requested := func() module.Resource { return &peeringPresent{peering: peering{Common: cloud.Common{Cloud: c}}} }
	unpeered := func() module.Resource { return &peeringAbsent{peering{Common: cloud.Common{Cloud: c}}} }
	return module.Table{
		"present": of("vpc", false), "absent": of("vpc", true),
		"subnet_present": of("subnet", false), "subnet_absent": of("subnet", true),
		"internet_gateway_present": of("internet_gateway", false), "internet_gateway_absent": of("internet_gateway", true),
		"route_table_present": of("route_table", false), "route_table_absent": of("route_table", true),
		"nat_gateway_present":  func() module.Resource { return &natGateway{Common: cloud.Common{Cloud: c}} },
		"nat_gateway_absent":   func() module.Resource { return &natGateway{Common: cloud.Common{Cloud: c}, absent: true} },
		"dhcp_options_present": func() module.Resource { return &dhcpOptions{Common: cloud.Common{Cloud: c}} },
		"dhcp_options_absent":  func() module.Resource { return &dhcpOptions{Common: cloud.Common{Cloud: c}, absent: true} },

		"vpc_peering_connection_present": requested, "request_vpc_peering_connection": requested,
		"accept_vpc_peering_connection": func() module.Resource {
			return &peeringAccepted{peering{Common: cloud.Common{Cloud: c}}}
		},
		"vpc_peering_connection_absent": unpeered, "delete_vpc_peering_connection": unpeered,
	}
}

// NetResource has the arguments of the states of boto_vpc for VPCs, subnets, internet gateways and route tables, which
// are found by their tag Name.
type NetResource struct {
	cloud.Common
	Kind      string
	Name      string     `sls:"name"`
	CIDR      string     `sls:"cidr_block"`
	Tenancy   string     `sls:"instance_tenancy"`
	DNS       *bool      `sls:"dns_support"`
	Hostnames *bool      `sls:"dns_hostnames"`
	VPCID     string     `sls:"vpc_id"`
	VPCName   string     `sls:"vpc_name"`
	Zone      string     `sls:"availability_zone"`
	PublicIP  *bool      `sls:"auto_assign_public_ipv4"`
	SubnetID  string     `sls:"subnet_id"`
	Detach    bool       `sls:"detach"` // ignored: a gateway is always detached before it is deleted
	TableID   string     `sls:"route_table_id"`
	Table     string     `sls:"route_table_name"`
	Routes    []any      `sls:"routes"`
	SubnetIDs []string   `sls:"subnet_ids"`
	Subnets   []string   `sls:"subnet_names"`
	Tags      *value.Map `sls:"tags"`
}

// netPresent makes a VPC, a subnet, an internet gateway or a route table, or corrects it.
type netPresent struct{ NetResource }

// RunsBeside implements module.Concurrent.
func (*netPresent) RunsBeside() {}

// Valid implements module.Validated.
func (n *netPresent) Valid() error {
	if n.CIDR == "" && (n.Kind == "vpc" || n.Kind == "subnet") {
		return diag.Amazon.Hint(errors.New("cidr_block is missing"), "give the addresses, such as 10.0.0.0/16")
	}
	for _, r := range n.Routes {
		if _, err := destination(r); err != nil {
			return err
		}
	}
	if n.CIDR == "" {
		return nil
	}
	cidr, err := ipv4("cidr_block", n.CIDR)
	if err != nil {
		return err
	}
	n.CIDR = cidr
	if _, bits, _ := strings.Cut(cidr, "/"); bits < "16" || bits > "28" || len(bits) < 2 {
		return diag.Amazon.Hint(fmt.Errorf("cidr_block is %s, and AWS takes prefixes of 16 to 28 bits", cidr),
			"give another network")
	}
	return nil
}

// Check implements module.Resource.
func (n *netPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := n.Cloud.Account(ctx, "vpc", n.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	n.Name = a.Call(n.Kind, n.Name, n.Tags)
	p := cloud.NewPlan()
	switch n.Kind {
	case "vpc":
		err = n.vpc(ctx, p, a)
	case "subnet":
		err = n.subnet(ctx, p, a)
	case "internet_gateway":
		err = n.gateway(ctx, p, a)
	default:
		err = n.routeTable(ctx, p, a)
	}
	return n.Planned(p, err)
}

// Named returns the VPC with the name of the resource, or the one with vpc_id, or nil if there is none.
func (n *NetResource) Named(ctx context.Context, a *cloud.Account) (*types.Vpc, error) {
	if n.Kind == "vpc" && n.VPCID != "" { // boto_vpc.absent
		all, err := VPCs(ctx, a)
		i := slices.IndexFunc(all, func(v types.Vpc) bool { return sdk.ToString(v.VpcId) == n.VPCID })
		if i < 0 || err != nil {
			return nil, err
		}
		return &all[i], nil
	}
	return VPCNamed(ctx, a, n.Name)
}

// tagged plans the tags of a resource that exists, with its name as the tag Name.
func (n *NetResource) tagged(p *cloud.Plan, a *cloud.Account, id string, has []types.Tag) {
	if n.Tags == nil {
		return
	}
	want := value.NewMap("Name", n.Name)
	want.Update(n.Tags)
	TagEC2(p, a, id, has, want)
}

func (n *NetResource) vpc(ctx context.Context, p *cloud.Plan, a *cloud.Account) error {
	has, err := n.Named(ctx, a)
	if err != nil {
		return err
	}
	if has == nil {
		a.Expect("vpc", n.Name)
		p.Create(value.NewMap("vpc", n.Name, "cidr_block", n.CIDR, "dns_support", n.DNS == nil || *n.DNS, "dns_hostnames",
			n.Hostnames != nil && *n.Hostnames)) // AWS's own values if they are not given
		id := ""
		p.Then("VPC made", func(ctx context.Context) error {
			defer a.Forget("vpcs")
			out, err := EC2Of(a).CreateVpc(ctx,
				&ec2.CreateVpcInput{CidrBlock: &n.CIDR, InstanceTenancy: types.Tenancy(n.Tenancy),
					TagSpecifications: Specs(types.ResourceTypeVpc, n.Tags, n.Name)})
			if err != nil {
				return cloud.Failed("making VPC", n.Name, err)
			}
			id = *out.Vpc.VpcId
			return n.seen(ctx, "VPC", func(ctx context.Context) (bool, error) {
				a.Forget("vpcs")
				has, err := n.Named(ctx, a)
				return has != nil, err
			})
		})
		if n.DNS != nil || n.Hostnames != nil {
			p.Then("DNS set", func(ctx context.Context) error { return n.dns(ctx, a, id, n.DNS != nil, n.Hostnames != nil) })
		}
		return nil
	}
	if old := sdk.ToString(has.CidrBlock); old != n.CIDR {
		p.Warnings = append(p.Warnings, "cidr_block is "+old+" and cannot be changed")
	}
	id := *has.VpcId
	one, err := n.attribute(ctx, p, a, id, types.VpcAttributeNameEnableDnsSupport, "dns_support", n.DNS)
	if err != nil {
		return err
	}
	two, err := n.attribute(ctx, p, a, id, types.VpcAttributeNameEnableDnsHostnames, "dns_hostnames", n.Hostnames)
	if err != nil {
		return err
	}
	if one || two {
		p.Then("DNS set", func(ctx context.Context) error { return n.dns(ctx, a, id, one, two) })
	}
	n.tagged(p, a, id, has.Tags)
	if len(p.Steps) > 0 {
		p.Then("VPCs read again", func(context.Context) error { a.Forget("vpcs"); return nil })
	}
	return nil
}

// attribute notes an attribute of a VPC if it is declared and differs, and reports whether it does.
func (n *NetResource) attribute(ctx context.Context, p *cloud.Plan, a *cloud.Account, id string,
	attribute types.VpcAttributeName, field string, want *bool) (bool, error) {
	if want == nil {
		return false, nil
	}
	out, err := EC2Of(a).DescribeVpcAttribute(ctx, &ec2.DescribeVpcAttributeInput{VpcId: &id, Attribute: attribute})
	if err != nil {
		return false, cloud.Failed("reading VPC", n.Name, err)
	}
	has := out.EnableDnsSupport
	if attribute == types.VpcAttributeNameEnableDnsHostnames {
		has = out.EnableDnsHostnames
	}
	return has != nil && p.Compare(field, sdk.ToBool(has.Value), *want), nil
}

// seen waits until AWS shows the resource that was just made. found reports whether it does.
func (n *NetResource) seen(ctx context.Context, kind string, found func(ctx context.Context) (bool, error)) error {
	return cloud.WaitFor(ctx, kind+" "+n.Name+" is seen", cloud.Soon, found)
}

// dns sets the DNS attributes of a VPC. AWS takes one of them with each request.
func (n *NetResource) dns(ctx context.Context, a *cloud.Account, id string, support, names bool) (err error) {
	if support {
		_, err = EC2Of(a).ModifyVpcAttribute(ctx,
			&ec2.ModifyVpcAttributeInput{VpcId: &id, EnableDnsSupport: &types.AttributeBooleanValue{Value: n.DNS}})
	}
	if names && err == nil {
		_, err = EC2Of(a).ModifyVpcAttribute(ctx,
			&ec2.ModifyVpcAttributeInput{VpcId: &id, EnableDnsHostnames: &types.AttributeBooleanValue{Value: n.Hostnames}})
	}
	return cloud.Failed("setting the DNS of VPC", n.Name, err)
}

// in returns the ID of the VPC that the arguments select for the resource.
func (n *NetResource) in(ctx context.Context, a *cloud.Account) (string, error) {
	return VPCOf(ctx, a, n.VPCID, n.VPCName)
}
