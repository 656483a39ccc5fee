package aws

import (
	"context"
	"errors"
	"slices"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// natGateway is boto_vpc.nat_gateway_present and nat_gateway_absent: the NAT gateway of a subnet.
type natGateway struct {
	common
	absent     bool
	Name       string `sls:"name"`
	SubnetID   string `sls:"subnet_id"`
	SubnetName string `sls:"subnet_name"`
	Allocation string `sls:"allocation_id"`
	Retries    int    `sls:"wait_for_delete_retries"` // Salt's; a run waits until the gateway is gone
}

// Valid implements module.Validated.
func (n *natGateway) Valid() error {
	if (n.SubnetID == "") == (n.SubnetName == "") {
		return diag.WithHint(errors.New("a NAT gateway is in one subnet"), "give one of subnet_id and subnet_name")
	}
	return nil
}

// Check implements module.Resource.
func (n *natGateway) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return n.check(n.look(ctx))
}

// natOf finds the NAT gateway of a subnet that is in one of some states; nil for none.
func natOf(ctx context.Context, a *account, subnet string, states ...string) (*types.NatGateway, error) {
	if subnet == later {
		return nil, nil
	}
	all, err := pages(func(next *string) ([]types.NatGateway, *string, error) {
		page, err := ec2Of(a).DescribeNatGateways(ctx, &ec2.DescribeNatGatewaysInput{NextToken: next,
			Filter: []types.Filter{filter("subnet-id", subnet), filter("state", states...)}})
		if err != nil {
			return nil, nil, failed("reading the NAT gateway of subnet", subnet, err)
		}
		return page.NatGateways, page.NextToken, nil
	})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

// subnetOf is the ID of a subnet that arguments name.
func subnetOf(ctx context.Context, a *account, id, name string) (string, error) {
	if id != "" {
		return id, nil
	}
	ids, err := subnetIDs(ctx, a, nil, []string{name})
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

func (n *natGateway) look(ctx context.Context) (*plan, error) {
	a, err := n.cloud.account(ctx, "vpc", n.Account)
	if err != nil {
		return nil, err
	}
	p := newPlan()
	if n.absent && n.SubnetName != "" {
		all, err := subnets(ctx, a)
		if err != nil || !slices.ContainsFunc(all, func(s types.Subnet) bool { return nameOf(s.Tags) == n.SubnetName }) {
			return p, err
		}
	}
	subnet, err := subnetOf(ctx, a, n.SubnetID, n.SubnetName)
	if err != nil {
		return nil, err
	}
	has, err := natOf(ctx, a, subnet, "pending", "available")
	switch {
	case err != nil:
		return nil, err
	case has == nil && !n.absent:
		a.expect("nat gateway", n.SubnetID+n.SubnetName)
		p.create(value.NewMap("nat_gateway", subnet))
		p.then("NAT gateway made", func(ctx context.Context) error { return n.create(ctx, a) })
	case has != nil && n.absent:
		p.remove(value.NewMap("nat_gateway", sdk.ToString(has.NatGatewayId)))
		p.then("NAT gateway deleted", func(ctx context.Context) error { return n.remove(ctx, a, has) })
	}
	return p, nil
}

// create makes the gateway, with an address of its own where no allocation is given, and waits until it routes.
func (n *natGateway) create(ctx context.Context, a *account) error {
	client := ec2Of(a)
	subnet, err := subnetOf(ctx, a, n.SubnetID, n.SubnetName)
	if err != nil {
		return err
	}
	allocation := n.Allocation
	if allocation == "" {
		out, err := client.AllocateAddress(ctx, &ec2.AllocateAddressInput{Domain: types.DomainTypeVpc})
		if err != nil {
			return failed("allocating an address for the NAT gateway of subnet", subnet, err)
		}
		allocation = sdk.ToString(out.AllocationId)
	}
	if _, err := client.CreateNatGateway(ctx,
		&ec2.CreateNatGatewayInput{SubnetId: &subnet, AllocationId: &allocation}); err != nil {
		return failed("making the NAT gateway of subnet", subnet, err)
	}
	return waitFor(ctx, "the NAT gateway of subnet "+subnet+" is available", 10*time.Minute,
		func(ctx context.Context) (bool, error) {
			now, err := natOf(ctx, a, subnet, "available")
			return now != nil, err
		})
}

// remove deletes the gateway, and waits until its address is free. The address stays the account's.
func (n *natGateway) remove(ctx context.Context, a *account, has *types.NatGateway) error {
	subnet := sdk.ToString(has.SubnetId)
	if _, err := ec2Of(a).DeleteNatGateway(ctx, &ec2.DeleteNatGatewayInput{NatGatewayId: has.NatGatewayId}); err != nil {
		return failed("deleting the NAT gateway of subnet", subnet, err)
	}
	return waitFor(ctx, "the NAT gateway of subnet "+subnet+" is gone", 10*time.Minute,
		func(ctx context.Context) (bool, error) {
			now, err := natOf(ctx, a, subnet, "pending", "available", "deleting")
			return now == nil, err
		})
}

// dhcpOptions is boto_vpc.dhcp_options_present and dhcp_options_absent: DHCP options of a VPC, by their tag Name.
type dhcpOptions struct {
	common
	absent      bool
	Name        string     `sls:"name"`
	ID          string     `sls:"dhcp_options_id"`
	VPCID       string     `sls:"vpc_id"`
	VPCName     string     `sls:"vpc_name"`
	Domain      any        `sls:"domain_name"`
	Servers     any        `sls:"domain_name_servers"`
	Time        any        `sls:"ntp_servers"`
	NetBIOS     any        `sls:"netbios_name_servers"`
	NetBIOSNode any        `sls:"netbios_node_type"`
	Tags        *value.Map `sls:"tags"`
}

// Valid implements module.Validated.
func (d *dhcpOptions) Valid() error {
	if !d.absent && d.VPCID == "" && d.VPCName == "" {
		return diag.WithHint(errors.New("nothing says which VPC uses the DHCP options"), "give vpc_name or vpc_id")
	}
	return nil
}

// Check implements module.Resource.
func (d *dhcpOptions) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return d.check(d.look(ctx))
}

// find reads the options; nil for none.
func (d *dhcpOptions) find(ctx context.Context, a *account) (*types.DhcpOptions, error) {
	filters := byName(d.Name)
	if d.ID != "" {
		filters = []types.Filter{filter("dhcp-options-id", d.ID)}
	}
	all, err := pages(func(next *string) ([]types.DhcpOptions, *string, error) {
		page, err := ec2Of(a).DescribeDhcpOptions(ctx, &ec2.DescribeDhcpOptionsInput{NextToken: next, Filters: filters})
		if err != nil {
			return nil, nil, failed("reading DHCP options", d.Name, err)
		}
		return page.DhcpOptions, page.NextToken, nil
	})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

// wanted are the options as declared, by AWS's names for them.
func (d *dhcpOptions) wanted() (fields *value.Map, all []types.NewDhcpConfiguration) {
	fields = value.NewMap()
	for _, o := range []struct {
		name string
		v    any
	}{{"domain-name", d.Domain}, {"domain-name-servers", d.Servers}, {"ntp-servers", d.Time},
		{"netbios-name-servers", d.NetBIOS}, {"netbios-node-type", d.NetBIOSNode}} {
		if values := texts(o.v); len(values) > 0 {
			fields.Set(o.name, value.Strings(values...))
			all = append(all, types.NewDhcpConfiguration{Key: &o.name, Values: values})
		}
	}
	return fields, all
}

func (d *dhcpOptions) look(ctx context.Context) (*plan, error) {
	a, err := d.cloud.account(ctx, "vpc", d.Account)
	if err != nil {
		return nil, err
	}
	p, client := newPlan(), ec2Of(a)
	has, err := d.find(ctx, a)
	switch {
	case err != nil:
		return nil, err
	case d.absent && has != nil:
		p.remove(value.NewMap("dhcp_options", d.Name))
		p.then("DHCP options deleted", func(ctx context.Context) error {
			_, err := client.DeleteDhcpOptions(ctx, &ec2.DeleteDhcpOptionsInput{DhcpOptionsId: has.DhcpOptionsId})
			return failed("deleting DHCP options", d.Name, err)
		})
		return p, nil
	case d.absent:
		return p, nil
	case has == nil && d.ID != "":
		return nil, diag.WithHint(errors.New("there are no DHCP options "+d.ID), "correct dhcp_options_id, or leave it out")
	}
	id := later
	if has == nil {
		d.create(p, a)
	} else {
		id = sdk.ToString(has.DhcpOptionsId)
		d.drift(p, a, has)
	}
	return p, d.associate(ctx, p, a, id)
}

func (d *dhcpOptions) create(p *plan, a *account) {
	fields, configuration := d.wanted()
	fields.Set("dhcp_options", d.Name)
	p.create(fields)
	p.then("DHCP options made", func(ctx context.Context) error {
		_, err := ec2Of(a).CreateDhcpOptions(ctx, &ec2.CreateDhcpOptionsInput{DhcpConfigurations: configuration,
			TagSpecifications: specs(types.ResourceTypeDhcpOptions, d.Tags, d.Name)})
		return failed("making DHCP options", d.Name, err)
	})
}

// drift warns of options that differ, which AWS does not change, and plans the tags.
func (d *dhcpOptions) drift(p *plan, a *account, has *types.DhcpOptions) {
	now := map[string][]string{}
	for _, c := range has.DhcpConfigurations {
		for _, v := range c.Values {
			now[sdk.ToString(c.Key)] = append(now[sdk.ToString(c.Key)], sdk.ToString(v.Value))
		}
	}
	want, _ := d.wanted()
	for _, name := range want.Names() {
		if old := value.Strings(now[name]...); !value.Equal(old, want.Value(name)) {
			p.warnings = append(p.warnings, name+" is "+value.Repr(old)+" and cannot be changed: give the options another name")
		}
	}
	if d.Tags != nil {
		tags := value.NewMap("Name", d.Name)
		tags.Update(d.Tags)
		tagEC2(p, a, sdk.ToString(has.DhcpOptionsId), has.Tags, tags)
	}
}

// associate plans that the VPC uses the options.
func (d *dhcpOptions) associate(ctx context.Context, p *plan, a *account, id string) error {
	vpc, err := vpcOf(ctx, a, d.VPCID, d.VPCName)
	if err != nil {
		return err
	}
	all, err := vpcs(ctx, a)
	if err != nil {
		return err
	}
	old := ""
	for _, v := range all {
		if sdk.ToString(v.VpcId) == vpc {
			old = sdk.ToString(v.DhcpOptionsId)
		}
	}
	if !p.compare("dhcp_options_id", old, id) {
		return nil
	}
	p.then("DHCP options associated", func(ctx context.Context) error {
		defer a.forget("vpcs")
		vpc, err := vpcOf(ctx, a, d.VPCID, d.VPCName)
		if err != nil {
			return err
		}
		has, err := d.find(ctx, a)
		if err != nil || has == nil {
			return errors.Join(err, missing("set of DHCP options", d.Name, "boto_vpc.dhcp_options_present"))
		}
		_, err = ec2Of(a).AssociateDhcpOptions(ctx, &ec2.AssociateDhcpOptionsInput{DhcpOptionsId: has.DhcpOptionsId,
			VpcId: &vpc})
		return failed("associating DHCP options", d.Name, err)
	})
	return nil
}
