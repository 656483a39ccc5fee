package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// interfacePresent is boto_ec2.eni_present: a network interface.
type interfacePresent struct {
	common
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
		return diag.WithHint(errors.New("groups is missing"), "give the security groups of the interface")
	case len(n.Records) > 0:
		return diag.WithHint(errors.New("arecords is not here"), "write boto_route53.present with the address")
	}
	return nil
}

// Check implements module.Resource.
func (n *interfacePresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return n.check(n.look(ctx))
}

// interfaceOf finds a network interface by its tag Name, or its ID; nil for none.
func interfaceOf(ctx context.Context, a *account, name, id string) (*types.NetworkInterface, error) {
	filters := byName(name)
	if id != "" {
		filters = []types.Filter{filter("network-interface-id", id)}
	}
	all, err := pages(func(next *string) ([]types.NetworkInterface, *string, error) {
		page, err := ec2Of(a).DescribeNetworkInterfaces(ctx,
			&ec2.DescribeNetworkInterfacesInput{NextToken: next, Filters: filters})
		if err != nil {
			return nil, nil, failed("reading network interface", name+id, err)
		}
		return page.NetworkInterfaces, page.NextToken, nil
	})
	switch {
	case err != nil || len(all) == 0:
		return nil, err
	case len(all) > 1:
		return nil, diag.WithHint(fmt.Errorf("%d network interfaces are named %s", len(all), name),
			"give them different tags Name")
	}
	return &all[0], nil
}

func (n *interfacePresent) subnet(ctx context.Context, a *account) (string, error) {
	if n.SubnetName == "" {
		return n.SubnetID, nil
	}
	ids, err := subnetIDs(ctx, a, nil, []string{n.SubnetName})
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

func (n *interfacePresent) groupIDs(ctx context.Context, a *account) (subnet string, ids []string, err error) {
	if subnet, err = n.subnet(ctx, a); err != nil {
		return "", nil, err
	}
	vpc, err := vpcOfSubnets(ctx, a, []string{subnet})
	if err != nil {
		return "", nil, err
	}
	ids, err = groupIDs(ctx, a, vpc, n.Groups)
	return subnet, ids, err
}

func (n *interfacePresent) look(ctx context.Context) (*plan, error) {
	a, err := n.cloud.account(ctx, "ec2", n.Account)
	if err != nil {
		return nil, err
	}
	p, client := newPlan(), ec2Of(a)
	has, err := interfaceOf(ctx, a, n.Name, "")
	if err != nil {
		return nil, err
	}
	subnet, ids, err := n.groupIDs(ctx, a)
	if err != nil {
		return nil, err
	}
	if has == nil {
		a.expect("network interface", n.Name)
		p.create(value.NewMap("eni", n.Name, "subnet_id", subnet, "groups", sorted(n.Groups), "source_dest_check", n.Checked))
		p.then("network interface made", func(ctx context.Context) error { return n.create(ctx, a) })
		has = &types.NetworkInterface{}
	} else {
		n.drift(p, client, has, subnet, ids)
	}
	if value.Truth(n.Allocate) && has.Association == nil {
		p.differ("allocate_eip", nil, later)
		p.then("elastic address associated", func(ctx context.Context) error { return n.address(ctx, a) })
	}
	return p, nil
}

func (n *interfacePresent) create(ctx context.Context, a *account) error {
	subnet, ids, err := n.groupIDs(ctx, a)
	if err != nil {
		return err
	}
	out, err := ec2Of(a).CreateNetworkInterface(ctx, &ec2.CreateNetworkInterfaceInput{SubnetId: &subnet, Groups: ids,
		PrivateIpAddress: optional(n.PrivateIP), Description: optional(n.Description),
		TagSpecifications: specs(types.ResourceTypeNetworkInterface, nil, n.Name)})
	if err != nil || n.Checked {
		return failed("making network interface", n.Name, err)
	}
	return n.modify(ctx, ec2Of(a),
		&ec2.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: out.NetworkInterface.NetworkInterfaceId,
			SourceDestCheck: &types.AttributeBooleanValue{Value: &n.Checked}})
}

func (n *interfacePresent) modify(ctx context.Context, client *ec2.Client,
	in *ec2.ModifyNetworkInterfaceAttributeInput) error {
	_, err := client.ModifyNetworkInterfaceAttribute(ctx, in)
	return failed("changing network interface", n.Name, err)
}

func (n *interfacePresent) drift(p *plan, client *ec2.Client, has *types.NetworkInterface, subnet string,
	ids []string) {
	var now []string
	for _, g := range has.Groups {
		now = append(now, sdk.ToString(g.GroupId))
	}
	set := func(what string, in *ec2.ModifyNetworkInterfaceAttributeInput) { // AWS takes one attribute with each request
		in.NetworkInterfaceId = has.NetworkInterfaceId
		p.then(what+" set", func(ctx context.Context) error { return n.modify(ctx, client, in) })
	}
	if p.compare("groups", sorted(now), sorted(ids)) {
		set("groups", &ec2.ModifyNetworkInterfaceAttributeInput{Groups: ids})
	}
	if p.compare("source_dest_check", sdk.ToBool(has.SourceDestCheck), n.Checked) {
		set("source_dest_check",
			&ec2.ModifyNetworkInterfaceAttributeInput{SourceDestCheck: &types.AttributeBooleanValue{Value: &n.Checked}})
	}
	if n.Description != "" && p.compare("description", sdk.ToString(has.Description), n.Description) {
		set("description",
			&ec2.ModifyNetworkInterfaceAttributeInput{Description: &types.AttributeValue{Value: &n.Description}})
	}
	for _, f := range []struct{ name, has, want string }{{"subnet_id", sdk.ToString(has.SubnetId), subnet},
		{"private_ip_address", sdk.ToString(has.PrivateIpAddress), n.PrivateIP}} {
		if f.want != "" && f.has != f.want {
			p.warnings = append(p.warnings, f.name+" is "+f.has+" and cannot be changed")
		}
	}
}

func (n *interfacePresent) address(ctx context.Context, a *account) error {
	has, err := interfaceOf(ctx, a, n.Name, "")
	if err != nil || has == nil {
		return errors.Join(err, missing("network interface", n.Name, "boto_ec2.eni_present"))
	}
	out, err := ec2Of(a).AllocateAddress(ctx, &ec2.AllocateAddressInput{Domain: types.DomainTypeVpc})
	if err == nil {
		_, err = ec2Of(a).AssociateAddress(ctx, &ec2.AssociateAddressInput{AllocationId: out.AllocationId,
			NetworkInterfaceId: has.NetworkInterfaceId})
	}
	return failed("giving an elastic address to network interface", n.Name, err)
}

// interfaceAbsent is boto_ec2.eni_absent.
type interfaceAbsent struct {
	common
	Name    string `sls:"name"`
	Release bool   `sls:"release_eip"`
}

// Check implements module.Resource.
func (n *interfaceAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := n.cloud.account(ctx, "ec2", n.Account)
	if err != nil {
		return module.Diff{}, err
	}
	p, client := newPlan(), ec2Of(a)
	has, err := interfaceOf(ctx, a, n.Name, "")
	if has == nil || err != nil {
		return n.check(p, err)
	}
	p.remove(value.NewMap("eni", n.Name))
	if has.Attachment != nil && has.Attachment.AttachmentId != nil {
		p.then("network interface detached", func(ctx context.Context) error {
			_, err := client.DetachNetworkInterface(ctx,
				&ec2.DetachNetworkInterfaceInput{AttachmentId: has.Attachment.AttachmentId})
			return failed("detaching network interface", n.Name, err)
		})
	}
	p.then("network interface deleted", func(ctx context.Context) error {
		return waitFor(ctx, "nothing uses network interface "+n.Name, soon, func(ctx context.Context) (bool, error) {
			_, err := client.DeleteNetworkInterface(ctx,
				&ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: has.NetworkInterfaceId})
			if code(err, "InvalidNetworkInterface.InUse", "InvalidParameterValue") {
				return false, nil
			}
			return err == nil, failed("deleting network interface", n.Name, err)
		})
	})
	if n.Release && has.Association != nil {
		p.then("address released", func(ctx context.Context) error {
			_, err := client.ReleaseAddress(ctx, &ec2.ReleaseAddressInput{AllocationId: has.Association.AllocationId})
			return failed("releasing the address of network interface", n.Name, err)
		})
	}
	return n.check(p, nil)
}

// privateAddresses is boto_ec2.private_ips_present and private_ips_absent: secondary addresses of a network interface.
type privateAddresses struct {
	common
	absent    bool
	Name      string   `sls:"name"`
	NICName   string   `sls:"network_interface_name"`
	NICID     string   `sls:"network_interface_id"`
	Addresses []string `sls:"private_ip_addresses,required"`
	Take      bool     `sls:"allow_reassignment"`
}

// Valid implements module.Validated.
func (s *privateAddresses) Valid() error {
	if (s.NICName == "") == (s.NICID == "") {
		return errors.New("one of network_interface_name and network_interface_id says which interface this is")
	}
	return nil
}

// Check implements module.Resource.
func (s *privateAddresses) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return s.check(s.look(ctx))
}

func (s *privateAddresses) look(ctx context.Context) (*plan, error) {
	a, err := s.cloud.account(ctx, "ec2", s.Account)
	if err != nil {
		return nil, err
	}
	p, client := newPlan(), ec2Of(a)
	has, err := interfaceOf(ctx, a, s.NICName, s.NICID)
	if err != nil {
		return nil, err
	}
	var now, want []string
	switch {
	case has != nil:
		for _, one := range has.PrivateIpAddresses {
			now = append(now, sdk.ToString(one.PrivateIpAddress))
		}
	case s.absent:
		return p, nil
	case !a.expects("network interface", s.NICName):
		return nil, missing("network interface", s.NICName+s.NICID, "boto_ec2.eni_present")
	}
	add, _ := apart(now, s.Addresses)
	drop := slices.DeleteFunc(slices.Clone(s.Addresses), func(one string) bool { return !slices.Contains(now, one) })
	switch {
	case s.absent && len(drop) > 0:
		want, _ = apart(drop, now)
		p.differ("private_ip_addresses", sorted(now), sorted(want))
		p.then("addresses removed", func(ctx context.Context) error {
			_, err := client.UnassignPrivateIpAddresses(ctx,
				&ec2.UnassignPrivateIpAddressesInput{NetworkInterfaceId: has.NetworkInterfaceId,
					PrivateIpAddresses: drop})
			return failed("removing addresses of network interface", s.NICName+s.NICID, err)
		})
	case !s.absent && len(add) > 0:
		p.differ("private_ip_addresses", sorted(now), sorted(slices.Concat(now, add)))
		p.then("addresses added", func(ctx context.Context) error {
			has, err := interfaceOf(ctx, a, s.NICName, s.NICID)
			if err != nil || has == nil {
				return errors.Join(err, missing("network interface", s.NICName+s.NICID, "boto_ec2.eni_present"))
			}
			_, err = client.AssignPrivateIpAddresses(ctx,
				&ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: has.NetworkInterfaceId,
					PrivateIpAddresses: add, AllowReassignment: &s.Take})
			return failed("adding addresses to network interface", s.NICName+s.NICID, err)
		})
	}
	return p, nil
}
