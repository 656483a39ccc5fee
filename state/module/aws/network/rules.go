package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// direction has the rules for incoming or outgoing traffic.
type direction struct {
	field  string
	want   any
	has    []types.IpPermission
	keep   *bool // false keeps rules that are not declared
	egress bool
}

// rules plans the rules of one direction.
func (s *secgroupPresent) rules(ctx context.Context, p *cloud.Plan, a *cloud.Account, vpc string, d direction) error {
	if d.want == nil {
		return nil
	}
	want, err := parseRules(d.want)
	if err != nil {
		return err
	}
	has := rulesOf(d.has)
	for i := range want {
		if err := want[i].resolve(ctx, a, vpc); err != nil {
			return err
		}
	}
	var add, drop []rule
	for _, r := range want {
		if !slices.ContainsFunc(has, r.same) {
			add = append(add, r)
		}
	}
	for _, r := range has {
		if !slices.ContainsFunc(want, r.same) && (d.keep == nil || *d.keep) {
			drop = append(drop, r)
		}
	}
	if len(add)+len(drop) == 0 {
		return nil
	}
	for i, r := range has { // a rule that stays is shown as it is declared
		if n := slices.IndexFunc(want, r.same); n >= 0 {
			has[i] = want[n]
		}
	}
	after := slices.Clone(want)
	for _, r := range has {
		if !slices.ContainsFunc(want, r.same) && !slices.Contains(drop, r) {
			after = append(after, r) // it is kept
		}
	}
	p.Differ(d.field, shownRules(has), shownRules(after))
	p.Then(d.field+" set", func(ctx context.Context) error { return s.change(ctx, a, d.egress, add, drop) })
	return nil
}

// change adds and removes rules. It adds first, so that traffic which stays allowed is not interrupted.
func (s *secgroupPresent) change(ctx context.Context, a *cloud.Account, egress bool, add, drop []rule) error {
	vpc, err := VPCOf(ctx, a, s.VPCID, s.VPCName)
	if err != nil {
		return err
	}
	id, err := groupID(ctx, a, vpc, s.Name)
	if err != nil {
		return err
	}
	defer a.Forget("groups:" + vpc)
	permissions := func(rules []rule) (all []types.IpPermission, err error) {
		for _, r := range rules {
			if r.group == cloud.Later {
				if err := r.resolve(ctx, a, vpc); err != nil {
					return nil, err
				}
			}
			all = append(all, r.permission())
		}
		return all, nil
	}
	adding, err := permissions(add)
	if err != nil {
		return err
	}
	dropping, err := permissions(drop)
	if err != nil {
		return err
	}
	if err := s.allow(ctx, EC2Of(a), egress, id, adding); err != nil {
		return err
	}
	return s.revoke(ctx, EC2Of(a), egress, id, dropping)
}

// allow adds rules. AWS refuses all rules of a request if the group has one of them already: another run may have added
// it, or the list did not show it yet. They are then added one by one.
func (s *secgroupPresent) allow(ctx context.Context, client *ec2.Client, egress bool, id string,
	rules []types.IpPermission) (err error) {
	switch {
	case len(rules) == 0:
		return nil
	case egress:
		_, err = client.AuthorizeSecurityGroupEgress(ctx,
			&ec2.AuthorizeSecurityGroupEgressInput{GroupId: &id, IpPermissions: rules})
	default:
		_, err = client.AuthorizeSecurityGroupIngress(ctx,
			&ec2.AuthorizeSecurityGroupIngressInput{GroupId: &id, IpPermissions: rules})
	}
	if !cloud.HasCode(err, "InvalidPermission.Duplicate") {
		return cloud.Failed("adding rules to security group", s.Name, err)
	}
	if len(rules) == 1 {
		return nil
	}
	for i := range rules {
		if err := s.allow(ctx, client, egress, id, rules[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (s *secgroupPresent) revoke(ctx context.Context, client *ec2.Client, egress bool, id string,
	rules []types.IpPermission) (err error) {
	switch {
	case len(rules) == 0:
		return nil
	case egress:
		_, err = client.RevokeSecurityGroupEgress(ctx,
			&ec2.RevokeSecurityGroupEgressInput{GroupId: &id, IpPermissions: rules})
	default:
		_, err = client.RevokeSecurityGroupIngress(ctx,
			&ec2.RevokeSecurityGroupIngressInput{GroupId: &id, IpPermissions: rules})
	}
	return cloud.Failed("removing rules of security group", s.Name, err)
}

// rule allows traffic on a range of ports from one source, or to one target.
type rule struct {
	protocol string
	from, to int32
	cidr     string
	group    string // ID, or cloud.Later for a group that the run makes
	name     string // name of the group
	vpc      string // name of the VPC of the group, if it is another one
	owner    string // account that owns the group
}

func (r rule) same(o rule) bool {
	return r.protocol == o.protocol && r.from == o.from && r.to == o.to && r.cidr == o.cidr &&
		(r.group == o.group && r.group != "" && r.group != cloud.Later || r.group == "" && o.group == "" &&
			r.name == o.name ||
			r.owner != "" && r.owner == o.owner && r.name != "" && r.name == o.name)
}

// parseRules returns the rules that an argument declares.
func parseRules(v any) (all []rule, err error) {
	for _, item := range module.Items(v) {
		m := cloud.MapOf(item)
		if m == nil {
			return nil, fmt.Errorf("a rule is a %s, and a mapping was expected", value.TypeName(item))
		}
		rules, err := parseRule(m)
		if err != nil {
			return nil, err
		}
		for _, r := range rules {
			if !slices.Contains(all, r) { // several texts can mean one rule
				all = append(all, r)
			}
		}
	}
	return all, nil
}

// ruleFields returns the fields of a rule.
func ruleFields() cloud.Fields {
	return cloud.Fields{"ip_protocol": cloud.Word, "from_port": cloud.Whole, "to_port": cloud.Whole,
		"cidr_ip": cloud.Anything, "source_group_name": cloud.Anything, "source_group_group_id": cloud.Anything,
		"source_group_owner_id": cloud.Word, "source_group_name_vpc": cloud.Word}
}

func parseRule(m *value.Map) (all []rule, err error) {
	shown := "the rule " + value.Repr(m)
	if err := ruleFields().Check(shown, m); err != nil {
		return nil, err
	}
	base := rule{protocol: cloud.Text(m, "ip_protocol"), from: -1, to: -1, owner: cloud.Text(m, "source_group_owner_id"),
		vpc: cloud.Text(m, "source_group_name_vpc")}
	if base.protocol == "" {
		return nil, diag.Amazon.Hint(errors.New(shown+" lacks ip_protocol"), "write tcp, udp, icmp or all")
	}
	if n, ok := cloud.Number(m, "from_port"); ok {
		base.from = n
	}
	if n, ok := cloud.Number(m, "to_port"); ok {
		base.to = n
	}
	if base, err = base.canonical(); err == nil {
		err = base.ports()
	}
	if err != nil {
		return nil, diag.Amazon.Hint(fmt.Errorf("%s: %w", shown, err), "%s", diag.HintOf(err))
	}
	kinds := 0
	for _, kind := range []string{"cidr_ip", "source_group_name", "source_group_group_id"} {
		values := cloud.Texts(m.Value(kind))
		if len(values) > 0 {
			kinds++
		}
		for _, v := range values {
			r := base
			switch kind {
			case "cidr_ip":
				if r.cidr, err = cloud.Network(v); err != nil {
					return nil, diag.Amazon.Hint(fmt.Errorf("cidr_ip of %s: %w", shown, err), "%s", diag.HintOf(err))
				}
			case "source_group_name":
				r.name = v
			default:
				r.group = v
			}
			all = append(all, r)
		}
	}
	if kinds != 1 {
		return nil, diag.Amazon.Hint(fmt.Errorf("%s has %d kinds of sources", shown, kinds),
			"give one of cidr_ip, source_group_name and source_group_group_id")
	}
	return all, nil
}

// protocols are the names that AWS gives to the numbers of protocols. It keeps other numbers.
var protocols = map[string]string{"all": "-1", "1": "icmp", "6": "tcp", "17": "udp", "58": "icmpv6"}

// canonical returns a rule as AWS stores it: with the name of its protocol if AWS has one for its number, without ports
// if the protocol has none, and with its network in the form of [cloud.Network].
func (r rule) canonical() (rule, error) {
	r.protocol = strings.ToLower(strings.TrimSpace(r.protocol))
	if name := protocols[r.protocol]; name != "" {
		r.protocol = name
	}
	switch r.protocol {
	case "tcp", "udp":
		if r.from == -1 && r.to == -1 { // AWS stores all ports as these
			r.from, r.to = 0, 65535
		}
	case "icmp", "icmpv6":
	default:
		n, err := strconv.Atoi(r.protocol)
		if err != nil || n < -1 || n > 255 {
			names := []string{"tcp", "udp", "icmp", "icmpv6", "all"}
			return r, diag.Amazon.Hint(fmt.Errorf("there is no protocol %s", r.protocol), "%s", cloud.Meant(r.protocol, names))
		}
		r.from, r.to = -1, -1
	}
	if r.cidr == "" {
		return r, nil
	}
	network, err := cloud.Network(r.cidr)
	if err == nil {
		r.cidr = network
	}
	return r, err
}

// ports returns an error unless the ports of a declared rule, or the type and code of an ICMP message, may be so.
func (r rule) ports() error {
	most, names := int32(65535), "ports 0 to 65535"
	least := int32(0)
	switch r.protocol {
	case "icmp", "icmpv6":
		most, least, names = 255, -1, "types and codes 0 to 255, and -1 for all"
	case "tcp", "udp":
	default:
		return nil
	}
	for _, n := range []int32{r.from, r.to} {
		if n < least || n > most {
			return diag.Amazon.Hint(fmt.Errorf("from_port %d and to_port %d are not in order", r.from, r.to), "%s has %s",
				r.protocol, names)
		}
	}
	if r.from > r.to && most > 255 {
		return diag.Amazon.Hint(fmt.Errorf("from_port %d is above to_port %d", r.from, r.to), "swap the two")
	}
	return nil
}

// resolve sets the ID of the group that a rule names. A group with a declared owner is not looked up.
func (r *rule) resolve(ctx context.Context, a *cloud.Account, vpc string) error {
	if r.name == "" || r.owner != "" {
		return nil
	}
	if r.vpc != "" {
		other, err := VPCOf(ctx, a, "", r.vpc)
		if err != nil {
			return err
		}
		vpc = other
	}
	id, err := groupID(ctx, a, vpc, r.name)
	r.group = id
	return err
}

func rulesOf(permissions []types.IpPermission) (all []rule) {
	add := func(r rule) {
		if plain, err := r.canonical(); err == nil {
			r = plain
		}
		all = append(all, r)
	}
	for _, p := range permissions {
		base := rule{protocol: sdk.ToString(p.IpProtocol), from: -1, to: -1}
		if p.FromPort != nil {
			base.from = *p.FromPort
		}
		if p.ToPort != nil {
			base.to = *p.ToPort
		}
		for _, x := range p.IpRanges {
			r := base
			r.cidr = sdk.ToString(x.CidrIp)
			add(r)
		}
		for _, x := range p.Ipv6Ranges {
			r := base
			r.cidr = sdk.ToString(x.CidrIpv6)
			add(r)
		}
		for _, x := range p.UserIdGroupPairs {
			r := base
			r.group, r.name, r.owner = sdk.ToString(x.GroupId), sdk.ToString(x.GroupName), sdk.ToString(x.UserId)
			add(r)
		}
	}
	return all
}

func (r rule) permission() types.IpPermission {
	p := types.IpPermission{IpProtocol: &r.protocol}
	if r.from != -1 || r.to != -1 || strings.HasPrefix(r.protocol, "icmp") {
		p.FromPort, p.ToPort = &r.from, &r.to
	}
	switch {
	case strings.Contains(r.cidr, ":"):
		p.Ipv6Ranges = []types.Ipv6Range{{CidrIpv6: &r.cidr}}
	case r.cidr != "":
		p.IpRanges = []types.IpRange{{CidrIp: &r.cidr}}
	case r.group != "":
		p.UserIdGroupPairs = []types.UserIdGroupPair{{GroupId: &r.group}}
	default:
		p.UserIdGroupPairs = []types.UserIdGroupPair{{GroupName: &r.name, UserId: &r.owner}}
	}
	return p
}

// shownRules returns rules as a plan shows them.
func shownRules(rules []rule) *value.List {
	rules = slices.Clone(rules)
	slices.SortFunc(rules, func(a, b rule) int {
		return cmp.Or(cmp.Compare(a.protocol, b.protocol), cmp.Compare(a.from, b.from), cmp.Compare(a.cidr, b.cidr),
			cmp.Compare(a.name, b.name))
	})
	all := value.NewList()
	for _, r := range rules {
		m := value.NewMap("ip_protocol", r.protocol, "from_port", int(r.from), "to_port", int(r.to))
		switch {
		case r.cidr != "":
			m.Set("cidr_ip", r.cidr)
		case r.name != "":
			m.Set("source_group_name", r.name)
		default:
			m.Set("source_group_group_id", r.group)
		}
		all.Append(m)
	}
	return all
}
