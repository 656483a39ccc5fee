package network

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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
	p.Differ(d.field, shownRules(has), shownRules(want))
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
				if r.group, err = groupID(ctx, a, vpc, r.name); err != nil {
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
	client := EC2Of(a)
	if len(adding) > 0 && egress {
		_, err = client.AuthorizeSecurityGroupEgress(ctx,
			&ec2.AuthorizeSecurityGroupEgressInput{GroupId: &id, IpPermissions: adding})
	} else if len(adding) > 0 {
		_, err = client.AuthorizeSecurityGroupIngress(ctx,
			&ec2.AuthorizeSecurityGroupIngressInput{GroupId: &id, IpPermissions: adding})
	}
	if err != nil && !cloud.HasCode(err, "InvalidPermission.Duplicate") {
		return cloud.Failed("adding rules to security group", s.Name, err)
	}
	err = nil
	if len(dropping) > 0 && egress {
		_, err = client.RevokeSecurityGroupEgress(ctx,
			&ec2.RevokeSecurityGroupEgressInput{GroupId: &id, IpPermissions: dropping})
	} else if len(dropping) > 0 {
		_, err = client.RevokeSecurityGroupIngress(ctx,
			&ec2.RevokeSecurityGroupIngressInput{GroupId: &id, IpPermissions: dropping})
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
	owner    string // account that owns the group
}

func (r rule) same(o rule) bool {
	return r.protocol == o.protocol && r.from == o.from && r.to == o.to && r.cidr == o.cidr &&
		(r.group == o.group && r.group != "" && r.group != cloud.Later || r.group == "" && o.group == "" &&
			r.name == o.name ||
			r.owner != "" && r.owner == o.owner && r.name == o.name)
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
		all = append(all, rules...)
	}
	return all, nil
}

func parseRule(m *value.Map) (all []rule, err error) {
	base := rule{protocol: cloud.Text(m, "ip_protocol"), from: -1, to: -1, owner: cloud.Text(m, "source_group_owner_id")}
	if base.protocol == "all" {
		base.protocol = "-1"
	}
	if n, ok := cloud.Number(m, "from_port"); ok {
		base.from = n
	}
	if n, ok := cloud.Number(m, "to_port"); ok {
		base.to = n
	}
	if base.protocol == "-1" {
		base.from, base.to = -1, -1
	}
	if base.protocol == "" {
		return nil, diag.Amazon.Hint(fmt.Errorf("the rule %s lacks ip_protocol", value.Repr(m)),
			"write tcp, udp, icmp or all")
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
				r.cidr = v
			case "source_group_name":
				r.name = v
			default:
				r.group = v
			}
			all = append(all, r)
		}
	}
	if kinds != 1 {
		return nil, diag.Amazon.Hint(fmt.Errorf("the rule %s has %d kinds of sources", value.Repr(m), kinds),
			"give one of cidr_ip, source_group_name and source_group_group_id")
	}
	return all, nil
}

// resolve sets the ID of the group that a rule names. A group with a declared owner is not looked up.
func (r *rule) resolve(ctx context.Context, a *cloud.Account, vpc string) error {
	if r.name == "" || r.owner != "" {
		return nil
	}
	id, err := groupID(ctx, a, vpc, r.name)
	r.group = id
	return err
}

func rulesOf(permissions []types.IpPermission) (all []rule) {
	for _, p := range permissions {
		base := rule{protocol: sdk.ToString(p.IpProtocol), from: -1, to: -1}
		if p.FromPort != nil && base.protocol != "-1" {
			base.from = *p.FromPort
		}
		if p.ToPort != nil && base.protocol != "-1" {
			base.to = *p.ToPort
		}
		for _, x := range p.IpRanges {
			r := base
			r.cidr = sdk.ToString(x.CidrIp)
			all = append(all, r)
		}
		for _, x := range p.Ipv6Ranges {
			r := base
			r.cidr = sdk.ToString(x.CidrIpv6)
			all = append(all, r)
		}
		for _, x := range p.UserIdGroupPairs {
			r := base
			r.group, r.name, r.owner = sdk.ToString(x.GroupId), sdk.ToString(x.GroupName), sdk.ToString(x.UserId)
			all = append(all, r)
		}
	}
	return all
}

func (r rule) permission() types.IpPermission {
	p := types.IpPermission{IpProtocol: &r.protocol}
	if r.protocol != "-1" {
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
