package compute

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
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// interfacePresent implements boto_ec2.eni_present: a network interface.
type interfacePresent struct {
	cloud.Common
	Name        string   `sls:"name"`
	SubnetID    string   `sls:"subnet_id"`
	SubnetName  string   `sls:"subnet_name"`
	PrivateIP   string   `sls:"private_ip_address"`
	Description string   `sls:"description"`
	Groups      []string `sls:"groups"`
	Checked     bool     `sls:"source_dest_check"`
	Allocate    any      `sls:"allocate_eip"`
	Records     []any    `sls:"arecords"`
}

// RunsBeside implements module.Concurrent.
func (*interfacePresent) RunsBeside() {}

// Valid implements module.Validated.
func (n *interfacePresent) Valid() error {
	switch {
	case (n.SubnetID == "") == (n.SubnetName == ""):
		return errors.New("one of subnet_id and subnet_name says where the interface is")
	case len(n.Groups) == 0:
		return diag.Amazon.Hint(errors.New("groups is missing"), "give the security groups of the interface")
	case len(n.Records) > 0:
		return diag.Amazon.Hint(errors.New("arecords is not supported"), "write boto_route53.present with the address")
	}
	return nil
}

// Check implements module.Resource.
func (n *interfacePresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return n.Planned(n.look(ctx))
}

// interfaceOf returns the network interface with an ID, or with a tag Name if id is empty, or nil if there is none.
func interfaceOf(ctx context.Context, a *cloud.Account, name, id string) (*types.NetworkInterface, error) {
	filters := network.ByName(name)
	if id != "" {
		filters = []types.Filter{network.Filter("network-interface-id", id)}
	}
	all, err := cloud.Pages(func(next *string) ([]types.NetworkInterface, *string, error) {
		page, err := network.EC2Of(a).DescribeNetworkInterfaces(ctx,
			&ec2.DescribeNetworkInterfacesInput{NextToken: next, Filters: filters})
		if err != nil {
			return nil, nil, cloud.Failed("reading network interface", name+id, err)
		}
		return page.NetworkInterfaces, page.NextToken, nil
	})
	if err != nil {
		return nil, err
	}
	return cloud.Only("network interface", name, all,
		func(n *types.NetworkInterface) *string { return n.NetworkInterfaceId }, "")
}

func (n *interfacePresent) subnet(ctx context.Context, a *cloud.Account) (string, error) {
	if n.SubnetName == "" {
		return n.SubnetID, nil
	}
	return network.SubnetIn(ctx, a, "", n.SubnetName)
}

func (n *interfacePresent) groupIDs(ctx context.Context, a *cloud.Account) (subnet string, ids []string, err error) {
	if subnet, err = n.subnet(ctx, a); err != nil {
		return "", nil, err
	}
	vpc, err := network.VPCOfSubnets(ctx, a, []string{subnet})
	if err != nil {
		return "", nil, err
	}
	ids, err = network.GroupIDs(ctx, a, vpc, n.Groups)
	return subnet, ids, err
}

func (n *interfacePresent) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := n.Cloud.Account(ctx, "ec2", n.Arguments)
	if err != nil {
		return nil, err
	}
	p, client := cloud.NewPlan(), network.EC2Of(a)
	has, err := interfaceOf(ctx, a, n.Name, "")
	if err != nil {
		return nil, err
	}
	subnet, ids, err := n.groupIDs(ctx, a)
	if err != nil {
		return nil, err
	}
	if has == nil {
		a.Expect("network interface", n.Name)
		p.Create(value.NewMap("eni", n.Name, "subnet_id", subnet, "groups", cloud.Sorted(n.Groups), "source_dest_check",
			n.Checked))
		p.Then("network interface made", func(ctx context.Context) error { return n.create(ctx, a) })
		has = &types.NetworkInterface{}
	} else {
		n.drift(p, client, has, subnet, ids)
	}
	if value.Truth(n.Allocate) && has.Association == nil {
		p.Differ("allocate_eip", nil, cloud.Later)
		p.Then("elastic address associated", func(ctx context.Context) error { return n.address(ctx, a) })
	}
	return p, nil
}

func (n *interfacePresent) create(ctx context.Context, a *cloud.Account) error {
	subnet, ids, err := n.groupIDs(ctx, a)
	if err != nil {
		return err
	}
	out, err := network.EC2Of(a).CreateNetworkInterface(ctx, &ec2.CreateNetworkInterfaceInput{SubnetId: &subnet,
		Groups:           ids,
		PrivateIpAddress: cloud.Optional(n.PrivateIP), Description: cloud.Optional(n.Description),
		TagSpecifications: network.Specs(types.ResourceTypeNetworkInterface, nil, n.Name)})
	if err != nil || n.Checked {
		return cloud.Failed("making network interface", n.Name, err)
	}
	return n.modify(ctx, network.EC2Of(a),
		&ec2.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: out.NetworkInterface.NetworkInterfaceId,
			SourceDestCheck: &types.AttributeBooleanValue{Value: &n.Checked}})
}

func (n *interfacePresent) modify(ctx context.Context, client *ec2.Client,
	in *ec2.ModifyNetworkInterfaceAttributeInput) error {
	_, err := client.ModifyNetworkInterfaceAttribute(ctx, in)
	return cloud.Failed("changing network interface", n.Name, err)
}

func (n *interfacePresent) drift(p *cloud.Plan, client *ec2.Client, has *types.NetworkInterface, subnet string,
	ids []string) {
	var now []string
	for _, g := range has.Groups {
		now = append(now, sdk.ToString(g.GroupId))
	}
	set := func(what string, in *ec2.ModifyNetworkInterfaceAttributeInput) { // AWS takes one attribute with each request
		in.NetworkInterfaceId = has.NetworkInterfaceId
		p.Then(what+" set", func(ctx context.Context) error { return n.modify(ctx, client, in) })
	}
	if p.Compare("groups", cloud.Sorted(now), cloud.Sorted(ids)) {
		set("groups", &ec2.ModifyNetworkInterfaceAttributeInput{Groups: ids})
	}
	if p.Compare("source_dest_check", sdk.ToBool(has.SourceDestCheck), n.Checked) {
		set("source_dest_check",
			&ec2.ModifyNetworkInterfaceAttributeInput{SourceDestCheck: &types.AttributeBooleanValue{Value: &n.Checked}})
	}
	if n.Description != "" && p.Compare("description", sdk.ToString(has.Description), n.Description) {
		set("description",
			&ec2.ModifyNetworkInterfaceAttributeInput{Description: &types.AttributeValue{Value: &n.Description}})
	}
	for _, f := range []struct{ name, has, want string }{{"subnet_id", sdk.ToString(has.SubnetId), subnet},
		{"private_ip_address", sdk.ToString(has.PrivateIpAddress), n.PrivateIP}} {
		if f.want != "" && f.has != f.want {
			p.Warnings = append(p.Warnings, f.name+" is "+f.has+" and cannot be changed")
		}
	}
}

func (n *interfacePresent) address(ctx context.Context, a *cloud.Account) error {
	has, err := interfaceOf(ctx, a, n.Name, "")
	if err != nil || has == nil {
		return errors.Join(err, cloud.Missing("network interface", n.Name, "boto_ec2.eni_present"))
	}
	out, err := network.EC2Of(a).AllocateAddress(ctx, &ec2.AllocateAddressInput{Domain: types.DomainTypeVpc})
	if err == nil {
		_, err = network.EC2Of(a).AssociateAddress(ctx, &ec2.AssociateAddressInput{AllocationId: out.AllocationId,
			NetworkInterfaceId: has.NetworkInterfaceId})
	}
	return cloud.Failed("giving an elastic address to network interface", n.Name, err)
}

// interfaceAbsent implements boto_ec2.eni_absent.
type interfaceAbsent struct {
	cloud.Common
	Name    string `sls:"name"`
	Release bool   `sls:"release_eip"`
}

// Check implements module.Resource.
func (n *interfaceAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := n.Cloud.Account(ctx, "ec2", n.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p, client := cloud.NewPlan(), network.EC2Of(a)
	has, err := interfaceOf(ctx, a, n.Name, "")
	if has == nil || err != nil {
		return n.Planned(p, err)
	}
	p.Remove(sdk.ToString(has.NetworkInterfaceId), value.NewMap("eni", n.Name))
	if has.Attachment != nil && has.Attachment.AttachmentId != nil {
		p.Then("network interface detached", func(ctx context.Context) error {
			_, err := client.DetachNetworkInterface(ctx,
				&ec2.DetachNetworkInterfaceInput{AttachmentId: has.Attachment.AttachmentId})
			return cloud.Failed("detaching network interface", n.Name, err)
		})
	}
	p.Then("network interface deleted", func(ctx context.Context) error {
		return cloud.WaitFor(ctx, "nothing uses network interface "+n.Name, cloud.Soon, func(ctx context.Context) (bool,
			error) {
			_, err := client.DeleteNetworkInterface(ctx,
				&ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: has.NetworkInterfaceId})
			if cloud.HasCode(err, "InvalidNetworkInterface.InUse", "InvalidParameterValue") {
				return false, nil
			}
			return err == nil, cloud.Failed("deleting network interface", n.Name, err)
		})
	})
	if n.Release && has.Association != nil {
		p.Then("address released", func(ctx context.Context) error {
			return release(ctx, client, has.Association.AllocationId, "network interface "+n.Name)
		})
	}
	return n.Planned(p, nil)
}
