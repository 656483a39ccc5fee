package network

import (
	"context"
	"errors"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// dhcpOptions implements boto_vpc.dhcp_options_present and dhcp_options_absent: DHCP options that are found by their
// tag Name, or by dhcp_options_id.
type dhcpOptions struct {
	cloud.Common
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
		return diag.Amazon.Hint(errors.New("nothing says which VPC uses the DHCP options"), "give vpc_name or vpc_id")
	}
	return nil
}

// Check implements module.Resource.
func (d *dhcpOptions) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return d.Planned(d.look(ctx))
}

// find returns the DHCP options, or nil if there are none.
func (d *dhcpOptions) find(ctx context.Context, a *cloud.Account) (*types.DhcpOptions, error) {
	filters := ByName(d.Name)
	if d.ID != "" {
		filters = []types.Filter{Filter("dhcp-options-id", d.ID)}
	}
	all, err := cloud.Pages(func(next *string) ([]types.DhcpOptions, *string, error) {
		page, err := EC2Of(a).DescribeDhcpOptions(ctx, &ec2.DescribeDhcpOptionsInput{NextToken: next, Filters: filters})
		if err != nil {
			return nil, nil, cloud.Failed("reading DHCP options", d.Name, err)
		}
		return page.DhcpOptions, page.NextToken, nil
	})
	if err != nil {
		return nil, err
	}
	return cloud.Only("DHCP option set", d.Name, all, func(o *types.DhcpOptions) *string { return o.DhcpOptionsId },
		"give dhcp_options_id")
}

// wanted returns the declared options by AWS's names, as the fields of a plan and in the form of a request.
func (d *dhcpOptions) wanted() (fields *value.Map, all []types.NewDhcpConfiguration) {
	fields = value.NewMap()
	for _, o := range []struct {
		name string
		v    any
	}{{"domain-name", d.Domain}, {"domain-name-servers", d.Servers}, {"ntp-servers", d.Time},
		{"netbios-name-servers", d.NetBIOS}, {"netbios-node-type", d.NetBIOSNode}} {
		if values := cloud.Texts(o.v); len(values) > 0 {
			fields.Set(o.name, value.Strings(values...))
			all = append(all, types.NewDhcpConfiguration{Key: &o.name, Values: values})
		}
	}
	return fields, all
}

func (d *dhcpOptions) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := d.Cloud.Account(ctx, "vpc", d.Arguments)
	if err != nil {
		return nil, err
	}
	p, client := cloud.NewPlan(), EC2Of(a)
	has, err := d.find(ctx, a)
	switch {
	case err != nil:
		return nil, err
	case d.absent && has != nil:
		p.Remove(sdk.ToString(has.DhcpOptionsId), value.NewMap("dhcp_options", d.Name))
		p.Then("DHCP options deleted", func(ctx context.Context) error {
			_, err := client.DeleteDhcpOptions(ctx, &ec2.DeleteDhcpOptionsInput{DhcpOptionsId: has.DhcpOptionsId})
			return cloud.Failed("deleting DHCP options", d.Name, err)
		})
		return p, nil
	case d.absent:
		return p, nil
	case has == nil && d.ID != "":
		return nil, diag.Resource.Hint(errors.New("there are no DHCP options "+d.ID),
			"correct dhcp_options_id, or leave it out")
	}
	id := cloud.Later
	if has == nil {
		d.create(p, a)
	} else {
		id = sdk.ToString(has.DhcpOptionsId)
		d.drift(p, a, has)
	}
	return p, d.associate(ctx, p, a, id)
}

func (d *dhcpOptions) create(p *cloud.Plan, a *cloud.Account) {
	fields, configuration := d.wanted()
	fields.Set("dhcp_options", d.Name)
	p.Create(fields)
	p.Then("DHCP options made", func(ctx context.Context) error {
		specs := Specs(types.ResourceTypeDhcpOptions, d.Tags, d.Name)
		out, err := EC2Of(a).CreateDhcpOptions(ctx, &ec2.CreateDhcpOptionsInput{DhcpConfigurations: configuration,
			TagSpecifications: specs})
		if err != nil {
			return cloud.Failed("making DHCP options", d.Name, err)
		}
		d.ID = sdk.ToString(out.DhcpOptions.DhcpOptionsId)
		if len(out.DhcpOptions.Tags) == 0 { // emulators of AWS do not tag what they make
			_, err = EC2Of(a).CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{d.ID}, Tags: specs[0].Tags})
		}
		return cloud.Failed("tagging DHCP options", d.Name, err)
	})
}

// drift warns of options that differ, as AWS cannot change them, and plans the tags.
func (d *dhcpOptions) drift(p *cloud.Plan, a *cloud.Account, has *types.DhcpOptions) {
	now := map[string][]string{}
	for _, c := range has.DhcpConfigurations {
		for _, v := range c.Values {
			now[sdk.ToString(c.Key)] = append(now[sdk.ToString(c.Key)], sdk.ToString(v.Value))
		}
	}
	want, _ := d.wanted()
	for _, name := range want.Names() {
		if old := value.Strings(now[name]...); !value.Equal(old, want.Value(name)) {
			p.Warnings = append(p.Warnings, name+" is "+value.Repr(old)+" and cannot be changed: give the options another name")
		}
	}
	if d.Tags != nil {
		tags := value.NewMap("Name", d.Name)
		tags.Update(d.Tags)
		TagEC2(p, a, sdk.ToString(has.DhcpOptionsId), has.Tags, tags)
	}
}

// associate plans to associate the options with the VPC.
func (d *dhcpOptions) associate(ctx context.Context, p *cloud.Plan, a *cloud.Account, id string) error {
	vpc, err := VPCOf(ctx, a, d.VPCID, d.VPCName)
	if err != nil {
		return err
	}
	all, err := VPCs(ctx, a)
	if err != nil {
		return err
	}
	old := ""
	for _, v := range all {
		if sdk.ToString(v.VpcId) == vpc {
			old = sdk.ToString(v.DhcpOptionsId)
		}
	}
	if !p.Compare("dhcp_options_id", old, id) {
		return nil
	}
	p.Then("DHCP options associated", func(ctx context.Context) error {
		defer a.Forget("vpcs")
		vpc, err := VPCOf(ctx, a, d.VPCID, d.VPCName)
		if err != nil {
			return err
		}
		has, err := d.find(ctx, a)
		if err != nil || has == nil {
			return errors.Join(err, cloud.Missing("set of DHCP options", d.Name, "boto_vpc.dhcp_options_present"))
		}
		_, err = EC2Of(a).AssociateDhcpOptions(ctx, &ec2.AssociateDhcpOptionsInput{DhcpOptionsId: has.DhcpOptionsId,
			VpcId: &vpc})
		return cloud.Failed("associating DHCP options", d.Name, err)
	})
	return nil
}
