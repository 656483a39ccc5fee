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

func vpcTable(c *Cloud) module.Table {
	of := func(kind string, absent bool) func() module.Resource {
		return func() module.Resource {
			n := netResource{common: common{cloud: c}, kind: kind, DNS: true, Tenancy: "default"}
			if absent {
				return &netAbsent{n}
			}
			return &netPresent{n}
		}
	}
	requested := func() module.Resource { return &peeringPresent{peering: peering{common: common{cloud: c}}} }
	unpeered := func() module.Resource { return &peeringAbsent{peering{common: common{cloud: c}}} }
	return module.Table{
		"present": of("vpc", false), "absent": of("vpc", true),
		"subnet_present": of("subnet", false), "subnet_absent": of("subnet", true),
		"internet_gateway_present": of("internet_gateway", false), "internet_gateway_absent": of("internet_gateway", true),
		"route_table_present": of("route_table", false), "route_table_absent": of("route_table", true),
		"nat_gateway_present":  func() module.Resource { return &natGateway{common: common{cloud: c}} },
		"nat_gateway_absent":   func() module.Resource { return &natGateway{common: common{cloud: c}, absent: true} },
		"dhcp_options_present": func() module.Resource { return &dhcpOptions{common: common{cloud: c}} },
		"dhcp_options_absent":  func() module.Resource { return &dhcpOptions{common: common{cloud: c}, absent: true} },

		"vpc_peering_connection_present": requested, "request_vpc_peering_connection": requested,
		"accept_vpc_peering_connection": func() module.Resource {
			return &peeringAccepted{peering{common: common{cloud: c}}}
		},
		"vpc_peering_connection_absent": unpeered, "delete_vpc_peering_connection": unpeered,
	}
}

// netResource are the arguments of the states of boto_vpc, which name their resources by the tag Name.
type netResource struct {
	common
	kind      string
	Name      string     `sls:"name"`
	CIDR      string     `sls:"cidr_block"`
	Tenancy   string     `sls:"instance_tenancy"`
	DNS       bool       `sls:"dns_support"`
	Hostnames bool       `sls:"dns_hostnames"`
	VPCID     string     `sls:"vpc_id"`
	VPCName   string     `sls:"vpc_name"`
	Zone      string     `sls:"availability_zone"`
	PublicIP  *bool      `sls:"auto_assign_public_ipv4"`
	SubnetID  string     `sls:"subnet_id"`
	Detach    bool       `sls:"detach"` // a gateway is detached before it is deleted in any case
	TableID   string     `sls:"route_table_id"`
	Table     string     `sls:"route_table_name"`
	Routes    []any      `sls:"routes"`
	SubnetIDs []string   `sls:"subnet_ids"`
	Subnets   []string   `sls:"subnet_names"`
	Tags      *value.Map `sls:"tags"`
}

// netPresent makes one resource of a network.
type netPresent struct{ netResource }

// RunsBeside implements module.Concurrent.
func (*netPresent) RunsBeside() {}

// Valid implements module.Validated.
func (n *netPresent) Valid() error {
	if n.CIDR == "" && (n.kind == "vpc" || n.kind == "subnet") {
		return diag.WithHint(errors.New("cidr_block is missing"), "give the addresses, such as 10.0.0.0/16")
	}
	return nil
}

// Check implements module.Resource.
func (n *netPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := n.cloud.account(ctx, "vpc", n.Account)
	if err != nil {
		return module.Diff{}, err
	}
	p := newPlan()
	switch n.kind {
	case "vpc":
		err = n.vpc(ctx, p, a)
	case "subnet":
		err = n.subnet(ctx, p, a)
	case "internet_gateway":
		err = n.gateway(ctx, p, a)
	default:
		err = n.routeTable(ctx, p, a)
	}
	return n.check(p, err)
}

func (n *netResource) named(ctx context.Context, a *account) (*types.Vpc, error) {
	all, err := vpcs(ctx, a)
	if err != nil {
		return nil, err
	}
	for _, v := range all {
		if nameOf(v.Tags) == n.Name {
			return &v, nil
		}
	}
	return nil, nil
}

// tagged plans the tags of a resource that is there; Name is one of them.
func (n *netResource) tagged(p *plan, a *account, id string, has []types.Tag) {
	if n.Tags == nil {
		return
	}
	want := value.NewMap("Name", n.Name)
	want.Update(n.Tags)
	tagEC2(p, a, id, has, want)
}

func (n *netResource) vpc(ctx context.Context, p *plan, a *account) error {
	has, err := n.named(ctx, a)
	if err != nil {
		return err
	}
	if has == nil {
		a.expect("vpc", n.Name)
		p.create(value.NewMap("vpc", n.Name, "cidr_block", n.CIDR, "dns_support", n.DNS, "dns_hostnames", n.Hostnames))
		p.then("VPC made", func(ctx context.Context) error {
			defer a.forget("vpcs")
			out, err := ec2Of(a).CreateVpc(ctx,
				&ec2.CreateVpcInput{CidrBlock: &n.CIDR, InstanceTenancy: types.Tenancy(n.Tenancy),
					TagSpecifications: specs(types.ResourceTypeVpc, n.Tags, n.Name)})
			if err != nil {
				return failed("making VPC", n.Name, err)
			}
			return n.dns(ctx, a, *out.Vpc.VpcId, true, true)
		})
		return nil
	}
	if old := sdk.ToString(has.CidrBlock); old != n.CIDR {
		p.warnings = append(p.warnings, "cidr_block is "+old+" and cannot be changed")
	}
	id := *has.VpcId
	support, err := ec2Of(a).DescribeVpcAttribute(ctx,
		&ec2.DescribeVpcAttributeInput{VpcId: &id, Attribute: types.VpcAttributeNameEnableDnsSupport})
	if err != nil {
		return failed("reading VPC", n.Name, err)
	}
	names, err := ec2Of(a).DescribeVpcAttribute(ctx,
		&ec2.DescribeVpcAttributeInput{VpcId: &id, Attribute: types.VpcAttributeNameEnableDnsHostnames})
	if err != nil {
		return failed("reading VPC", n.Name, err)
	}
	one := support.EnableDnsSupport != nil && p.compare("dns_support", sdk.ToBool(support.EnableDnsSupport.Value), n.DNS)
	two := names.EnableDnsHostnames != nil && p.compare("dns_hostnames", sdk.ToBool(names.EnableDnsHostnames.Value),
		n.Hostnames)
	if one || two {
		p.then("DNS set", func(ctx context.Context) error { return n.dns(ctx, a, id, one, two) })
	}
	n.tagged(p, a, id, has.Tags)
	if len(p.steps) > 0 {
		p.then("VPCs read again", func(context.Context) error { a.forget("vpcs"); return nil })
	}
	return nil
}

// dns sets the attributes of DNS of a VPC, of which AWS takes one with each request.
func (n *netResource) dns(ctx context.Context, a *account, id string, support, names bool) (err error) {
	if support {
		_, err = ec2Of(a).ModifyVpcAttribute(ctx,
			&ec2.ModifyVpcAttributeInput{VpcId: &id, EnableDnsSupport: &types.AttributeBooleanValue{Value: &n.DNS}})
	}
	if names && err == nil {
		_, err = ec2Of(a).ModifyVpcAttribute(ctx,
			&ec2.ModifyVpcAttributeInput{VpcId: &id, EnableDnsHostnames: &types.AttributeBooleanValue{Value: &n.Hostnames}})
	}
	return failed("setting the DNS of VPC", n.Name, err)
}

// in is the ID of the VPC that the arguments name, which the resource is in.
func (n *netResource) in(ctx context.Context, a *account) (string, error) {
	return vpcOf(ctx, a, n.VPCID, n.VPCName)
}

func (n *netResource) findSubnet(ctx context.Context, a *account) (*types.Subnet, error) {
	all, err := subnets(ctx, a)
	if i := slices.IndexFunc(all, func(s types.Subnet) bool {
		return n.SubnetID == "" && nameOf(s.Tags) == n.Name || n.SubnetID != "" && sdk.ToString(s.SubnetId) == n.SubnetID
	}); i >= 0 && err == nil {
		return &all[i], nil
	}
	return nil, err
}

func (n *netResource) subnet(ctx context.Context, p *plan, a *account) error {
	vpc, err := n.in(ctx, a)
	if err != nil {
		return err
	}
	has, err := n.findSubnet(ctx, a)
	if err != nil {
		return err
	}
	if has == nil {
		a.expect("subnet", n.Name)
		fields := value.NewMap("subnet", n.Name, "cidr_block", n.CIDR, "vpc_id", vpc)
		put(fields, "availability_zone", &n.Zone)
		p.create(fields)
		p.then("subnet made", func(ctx context.Context) error {
			defer a.forget("subnets")
			vpc, err := n.in(ctx, a)
			if err != nil {
				return err
			}
			in := &ec2.CreateSubnetInput{CidrBlock: &n.CIDR, VpcId: &vpc,
				TagSpecifications: specs(types.ResourceTypeSubnet, n.Tags, n.Name)}
			if n.Zone != "" {
				in.AvailabilityZone = &n.Zone
			}
			_, err = ec2Of(a).CreateSubnet(ctx, in)
			return failed("making subnet", n.Name, err)
		})
	} else {
		for field, pair := range map[string][2]string{"cidr_block": {sdk.ToString(has.CidrBlock), n.CIDR},
			"availability_zone": {sdk.ToString(has.AvailabilityZone), n.Zone}} {
			if pair[1] != "" && pair[0] != pair[1] {
				p.warnings = append(p.warnings, field+" is "+pair[0]+" and cannot be changed")
			}
		}
		n.tagged(p, a, *has.SubnetId, has.Tags)
	}
	public := has != nil && sdk.ToBool(has.MapPublicIpOnLaunch)
	if n.PublicIP != nil && p.compare("auto_assign_public_ipv4", public, *n.PublicIP) {
		p.then("public addresses set", func(ctx context.Context) error {
			defer a.forget("subnets")
			now, err := n.findSubnet(ctx, a)
			if err != nil || now == nil {
				return errors.Join(err, missing("subnet", n.Name, "boto_vpc.subnet_present"))
			}
			_, err = ec2Of(a).ModifySubnetAttribute(ctx, &ec2.ModifySubnetAttributeInput{SubnetId: now.SubnetId,
				MapPublicIpOnLaunch: &types.AttributeBooleanValue{Value: n.PublicIP}})
			return failed("setting the public addresses of subnet", n.Name, err)
		})
	}
	return n.subnetTable(ctx, p, a, has)
}

// table is the route table that the arguments name for a subnet; nil for one that the run makes.
func (n *netResource) table(ctx context.Context, a *account) (*types.RouteTable, error) {
	if n.TableID == "" {
		return tableOf(ctx, a, n.Table)
	}
	out, err := ec2Of(a).DescribeRouteTables(ctx,
		&ec2.DescribeRouteTablesInput{Filters: []types.Filter{filter("route-table-id", n.TableID)}})
	if err != nil || len(out.RouteTables) == 0 {
		return nil, failed("reading route table", n.TableID, err)
	}
	return &out.RouteTables[0], nil
}

// subnetTable plans the route table of a subnet.
func (n *netResource) subnetTable(ctx context.Context, p *plan, a *account, has *types.Subnet) error {
	if n.TableID == "" && n.Table == "" {
		return nil
	}
	want, err := n.table(ctx, a)
	if err != nil {
		return err
	}
	id, old := later, ""
	switch {
	case want != nil:
		id = sdk.ToString(want.RouteTableId)
	case n.TableID != "" || !a.expects("route table", n.Table):
		return missing("route table", n.TableID+n.Table, "boto_vpc.route_table_present")
	}
	var association *string
	if has != nil {
		if old, association, err = associated(ctx, a, *has.SubnetId); err != nil {
			return err
		}
	}
	if !p.compare("route_table_id", old, id) {
		return nil
	}
	p.then("route table associated", func(ctx context.Context) error { return n.associate(ctx, a, association) })
	return nil
}

// associated is the route table of a subnet, and its association; "" for the main one of the VPC.
func associated(ctx context.Context, a *account, subnet string) (table string, association *string, err error) {
	out, err := ec2Of(a).DescribeRouteTables(ctx,
		&ec2.DescribeRouteTablesInput{Filters: []types.Filter{filter("association.subnet-id", subnet)}})
	if err != nil {
		return "", nil, failed("reading the route table of subnet", subnet, err)
	}
	for _, t := range out.RouteTables {
		for _, s := range t.Associations {
			if sdk.ToString(s.SubnetId) == subnet {
				return sdk.ToString(t.RouteTableId), s.RouteTableAssociationId, nil
			}
		}
	}
	return "", nil, nil
}

// associate gives a subnet its route table, in the place of another one.
func (n *netResource) associate(ctx context.Context, a *account, association *string) error {
	want, err := n.table(ctx, a)
	if err != nil || want == nil {
		return errors.Join(err, missing("route table", n.TableID+n.Table, "boto_vpc.route_table_present"))
	}
	if association != nil {
		_, err = ec2Of(a).ReplaceRouteTableAssociation(ctx, &ec2.ReplaceRouteTableAssociationInput{AssociationId: association,
			RouteTableId: want.RouteTableId})
		return failed("giving route table "+n.TableID+n.Table+" to subnet", n.Name, err)
	}
	now, err := n.findSubnet(ctx, a)
	if err != nil || now == nil {
		return errors.Join(err, missing("subnet", n.Name, "boto_vpc.subnet_present"))
	}
	_, err = ec2Of(a).AssociateRouteTable(ctx, &ec2.AssociateRouteTableInput{RouteTableId: want.RouteTableId,
		SubnetId: now.SubnetId})
	return failed("giving route table "+n.TableID+n.Table+" to subnet", n.Name, err)
}

func byName(name string) []types.Filter {
	return []types.Filter{{Name: sdk.String("tag:Name"), Values: []string{name}}}
}

func gatewayOf(ctx context.Context, a *account, name string) (*types.InternetGateway, error) {
	out, err := ec2Of(a).DescribeInternetGateways(ctx, &ec2.DescribeInternetGatewaysInput{Filters: byName(name)})
	if err != nil || len(out.InternetGateways) == 0 {
		return nil, failed("reading internet gateway", name, err)
	}
	return &out.InternetGateways[0], nil
}

func (n *netResource) gateway(ctx context.Context, p *plan, a *account) error {
	has, err := gatewayOf(ctx, a, n.Name)
	if err != nil {
		return err
	}
	attached := ""
	if has == nil {
		a.expect("internet gateway", n.Name)
		p.create(value.NewMap("internet_gateway", n.Name))
		p.then("internet gateway made", func(ctx context.Context) error {
			_, err := ec2Of(a).CreateInternetGateway(ctx, &ec2.CreateInternetGatewayInput{
				TagSpecifications: specs(types.ResourceTypeInternetGateway, n.Tags, n.Name)})
			return failed("making internet gateway", n.Name, err)
		})
	} else {
		if len(has.Attachments) > 0 {
			attached = sdk.ToString(has.Attachments[0].VpcId)
		}
		n.tagged(p, a, *has.InternetGatewayId, has.Tags)
	}
	if n.VPCID == "" && n.VPCName == "" {
		return nil
	}
	vpc, err := n.in(ctx, a)
	if err != nil || !p.compare("vpc_id", attached, vpc) {
		return err
	}
	p.then("internet gateway attached", func(ctx context.Context) error {
		vpc, err := n.in(ctx, a)
		if err != nil {
			return err
		}
		now, err := gatewayOf(ctx, a, n.Name)
		if err != nil || now == nil {
			return errors.Join(err, missing("internet gateway", n.Name, "boto_vpc.internet_gateway_present"))
		}
		if attached != "" {
			if _, err := ec2Of(a).DetachInternetGateway(ctx,
				&ec2.DetachInternetGatewayInput{InternetGatewayId: now.InternetGatewayId, VpcId: &attached}); err != nil {
				return failed("detaching internet gateway", n.Name, err)
			}
		}
		_, err = ec2Of(a).AttachInternetGateway(ctx, &ec2.AttachInternetGatewayInput{InternetGatewayId: now.InternetGatewayId,
			VpcId: &vpc})
		return failed("attaching internet gateway", n.Name, err)
	})
	return nil
}

func tableOf(ctx context.Context, a *account, name string) (*types.RouteTable, error) {
	out, err := ec2Of(a).DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{Filters: byName(name)})
	if err != nil || len(out.RouteTables) == 0 {
		return nil, failed("reading route table", name, err)
	}
	return &out.RouteTables[0], nil
}

// route is where a route leads.
type route struct{ cidr, gateway, instance, nat, nic, peer string }

// routes are the routes as declared, with the IDs of gateways; later for one that the run makes.
func (n *netResource) routes(ctx context.Context, a *account) (all []route, err error) {
	for _, item := range n.Routes {
		m := mapOf(item)
		r := route{cidr: text(m, "destination_cidr_block"), gateway: text(m, "gateway_id"), instance: text(m, "instance_id"),
			nat: text(m, "nat_gateway_id"), nic: text(m, "interface_id"), peer: text(m, "vpc_peering_connection_id")}
		if r.cidr == "" {
			return nil, diag.WithHint(fmt.Errorf("the route %s lacks destination_cidr_block", value.Repr(item)), "give it")
		}
		if err := r.resolve(ctx, a, m); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// resolve finds the IDs of what a route names; later for what the run makes.
func (r *route) resolve(ctx context.Context, a *account, m *value.Map) error {
	found := func(to *string, kind, name, state string, id *string, err error) error {
		switch {
		case err != nil:
			return err
		case id != nil:
			*to = *id
		case a.expects(kind, name):
			*to = later
		default:
			return missing(kind, name, state)
		}
		return nil
	}
	if name := text(m, "internet_gateway_name"); name != "" {
		g, err := gatewayOf(ctx, a, name)
		if g == nil {
			g = &types.InternetGateway{}
		}
		return found(&r.gateway, "internet gateway", name, "boto_vpc.internet_gateway_present", g.InternetGatewayId, err)
	}
	if name := text(m, "vpc_peering_connection_name"); name != "" {
		c, err := (&peering{ConnName: name}).find(ctx, a)
		if c == nil {
			c = &types.VpcPeeringConnection{}
		}
		return found(&r.peer, "peering", name, "boto_vpc.vpc_peering_connection_present", c.VpcPeeringConnectionId, err)
	}
	id, name := text(m, "nat_gateway_subnet_id"), text(m, "nat_gateway_subnet_name")
	if id+name == "" {
		return nil
	}
	subnet, err := subnetOf(ctx, a, id, name)
	if err != nil {
		return err
	}
	nat, err := natOf(ctx, a, subnet, "pending", "available")
	if nat == nil {
		nat = &types.NatGateway{}
	}
	return found(&r.nat, "nat gateway", id+name, "boto_vpc.nat_gateway_present", nat.NatGatewayId, err)
}

func shownRoutes(all []route) *value.Map {
	m := value.NewMap()
	slices.SortFunc(all, func(a, b route) int { return compareText(a.cidr, b.cidr) })
	for _, r := range all {
		m.Set(r.cidr, r.gateway+r.instance+r.nat+r.nic+r.peer)
	}
	return m
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (n *netResource) routeTable(ctx context.Context, p *plan, a *account) error {
	has, err := tableOf(ctx, a, n.Name)
	if err != nil {
		return err
	}
	if has == nil {
		vpc, err := n.in(ctx, a)
		if err != nil {
			return err
		}
		a.expect("route table", n.Name)
		p.create(value.NewMap("route_table", n.Name, "vpc_id", vpc))
		p.then("route table made", func(ctx context.Context) error {
			vpc, err := n.in(ctx, a)
			if err != nil {
				return err
			}
			_, err = ec2Of(a).CreateRouteTable(ctx, &ec2.CreateRouteTableInput{VpcId: &vpc,
				TagSpecifications: specs(types.ResourceTypeRouteTable, n.Tags, n.Name)})
			return failed("making route table", n.Name, err)
		})
		has = &types.RouteTable{}
	} else {
		n.tagged(p, a, *has.RouteTableId, has.Tags)
	}
	if err := n.tableRoutes(ctx, p, a, has); err != nil {
		return err
	}
	return n.tableSubnets(ctx, p, a, has)
}

func (n *netResource) tableRoutes(ctx context.Context, p *plan, a *account, has *types.RouteTable) error {
	if n.Routes == nil {
		return nil
	}
	want, err := n.routes(ctx, a)
	if err != nil {
		return err
	}
	var old []route
	for _, r := range has.Routes {
		if sdk.ToString(r.GatewayId) != "local" && r.DestinationCidrBlock != nil {
			one := route{cidr: *r.DestinationCidrBlock, gateway: sdk.ToString(r.GatewayId), instance: sdk.ToString(r.InstanceId),
				nat: sdk.ToString(r.NatGatewayId), nic: sdk.ToString(r.NetworkInterfaceId),
				peer: sdk.ToString(r.VpcPeeringConnectionId)}
			if one.instance != "" { // AWS names the interface of the instance, too
				one.nic = ""
			}
			old = append(old, one)
		}
	}
	if !p.compare("routes", shownRoutes(old), shownRoutes(want)) {
		return nil
	}
	p.then("routes set", func(ctx context.Context) error {
		now, err := tableOf(ctx, a, n.Name)
		if err != nil || now == nil {
			return errors.Join(err, missing("route table", n.Name, "boto_vpc.route_table_present"))
		}
		want, err := n.routes(ctx, a)
		if err != nil {
			return err
		}
		for _, r := range old {
			if slices.Contains(want, r) {
				continue
			}
			if _, err := ec2Of(a).DeleteRoute(ctx,
				&ec2.DeleteRouteInput{RouteTableId: now.RouteTableId, DestinationCidrBlock: &r.cidr}); err != nil {
				return failed("deleting a route of table", n.Name, err)
			}
		}
		for _, r := range want {
			if slices.Contains(old, r) {
				continue
			}
			in := &ec2.CreateRouteInput{RouteTableId: now.RouteTableId, DestinationCidrBlock: &r.cidr}
			for field, v := range map[**string]string{&in.GatewayId: r.gateway, &in.InstanceId: r.instance,
				&in.NatGatewayId: r.nat, &in.NetworkInterfaceId: r.nic, &in.VpcPeeringConnectionId: r.peer} {
				if v != "" {
					*field = &v
				}
			}
			if _, err := ec2Of(a).CreateRoute(ctx, in); err != nil {
				return failed("making a route of table", n.Name, err)
			}
		}
		return nil
	})
	return nil
}

func (n *netResource) tableSubnets(ctx context.Context, p *plan, a *account, has *types.RouteTable) error {
	if n.SubnetIDs == nil && n.Subnets == nil {
		return nil
	}
	want, err := subnetIDs(ctx, a, n.SubnetIDs, n.Subnets)
	if err != nil {
		return err
	}
	var old []string
	associations := map[string]string{}
	for _, s := range has.Associations {
		if id := sdk.ToString(s.SubnetId); id != "" {
			old = append(old, id)
			associations[id] = sdk.ToString(s.RouteTableAssociationId)
		}
	}
	if !p.compare("subnets", sorted(old), sorted(want)) {
		return nil
	}
	p.then("subnets associated", func(ctx context.Context) error {
		now, err := tableOf(ctx, a, n.Name)
		if err != nil || now == nil {
			return errors.Join(err, missing("route table", n.Name, "boto_vpc.route_table_present"))
		}
		want, err := subnetIDs(ctx, a, n.SubnetIDs, n.Subnets)
		if err != nil {
			return err
		}
		add, drop := apart(old, want)
		for _, id := range drop {
			association := associations[id]
			if _, err := ec2Of(a).DisassociateRouteTable(ctx,
				&ec2.DisassociateRouteTableInput{AssociationId: &association}); err != nil {
				return failed("removing a subnet from route table", n.Name, err)
			}
		}
		for _, id := range add {
			if _, err := ec2Of(a).AssociateRouteTable(ctx, &ec2.AssociateRouteTableInput{RouteTableId: now.RouteTableId,
				SubnetId: &id}); err != nil {
				return failed("giving a subnet route table", n.Name, err)
			}
		}
		return nil
	})
	return nil
}

// netAbsent deletes one resource of a network.
type netAbsent struct{ netResource }

// Check implements module.Resource.
func (n *netAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := n.cloud.account(ctx, "vpc", n.Account)
	if err != nil {
		return module.Diff{}, err
	}
	p := newPlan()
	do, err := n.deletion(ctx, a)
	if do != nil && err == nil {
		p.remove(value.NewMap(n.kind, n.Name))
		p.then(n.kind+" deleted", func(ctx context.Context) error {
			defer a.forget("")
			return failed("deleting "+n.kind, n.Name, do(ctx))
		})
	}
	return n.check(p, err)
}

// deletion is what deletes the resource; nil if it does not exist.
func (n *netAbsent) deletion(ctx context.Context, a *account) (func(context.Context) error, error) {
	client := ec2Of(a)
	switch n.kind {
	case "vpc":
		has, err := n.named(ctx, a)
		if has == nil || err != nil {
			return nil, err
		}
		return func(ctx context.Context) error {
			_, err := client.DeleteVpc(ctx, &ec2.DeleteVpcInput{VpcId: has.VpcId})
			return err
		}, nil
	case "subnet":
		has, err := n.findSubnet(ctx, a)
		if has == nil || err != nil {
			return nil, err
		}
		return func(ctx context.Context) error {
			_, err := client.DeleteSubnet(ctx, &ec2.DeleteSubnetInput{SubnetId: has.SubnetId})
			return err
		}, nil
	case "internet_gateway":
		has, err := gatewayOf(ctx, a, n.Name)
		if has == nil || err != nil {
			return nil, err
		}
		return func(ctx context.Context) error {
			for _, at := range has.Attachments {
				if _, err := client.DetachInternetGateway(ctx,
					&ec2.DetachInternetGatewayInput{InternetGatewayId: has.InternetGatewayId, VpcId: at.VpcId}); err != nil {
					return err
				}
			}
			_, err := client.DeleteInternetGateway(ctx,
				&ec2.DeleteInternetGatewayInput{InternetGatewayId: has.InternetGatewayId})
			return err
		}, nil
	}
	has, err := tableOf(ctx, a, n.Name)
	if has == nil || err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		for _, s := range has.Associations {
			if s.SubnetId == nil {
				continue
			}
			if _, err := client.DisassociateRouteTable(ctx,
				&ec2.DisassociateRouteTableInput{AssociationId: s.RouteTableAssociationId}); err != nil {
				return err
			}
		}
		_, err := client.DeleteRouteTable(ctx, &ec2.DeleteRouteTableInput{RouteTableId: has.RouteTableId})
		return err
	}, nil
}
