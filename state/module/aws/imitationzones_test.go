package aws_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/aws/aws-sdk-go-v2/service/route53/types"
)

// dnsZones imitates Route 53: a change is pending for some reads.
type dnsZones struct {
	all     map[string]*dnsZone // by ID
	changes map[string]*lag
	made    int
	lag     int
}

type dnsZone struct {
	types.HostedZone
	sets []types.ResourceRecordSet
}

func newZones(reads int) *dnsZones {
	return &dnsZones{all: map[string]*dnsZone{}, changes: map[string]*lag{}, lag: reads}
}

func (s *dnsZones) answer(in any) (any, error) {
	switch in := in.(type) {
	case *route53.ListHostedZonesInput:
		var list []types.HostedZone
		for _, z := range sortedBy(s.all) {
			list = append(list, z.HostedZone)
		}
		shown, next := page(list, in.Marker)
		return &route53.ListHostedZonesOutput{HostedZones: shown, NextMarker: next}, nil
	case *route53.CreateHostedZoneInput:
		s.made++
		id := fmt.Sprintf("Z%03d", s.made)
		s.all[id] = &dnsZone{HostedZone: types.HostedZone{Id: &id, Name: in.Name, Config: in.HostedZoneConfig}}
		return &route53.CreateHostedZoneOutput{HostedZone: &s.all[id].HostedZone}, nil
	case *route53.UpdateHostedZoneCommentInput:
		s.all[*in.Id].Config = &types.HostedZoneConfig{Comment: in.Comment, PrivateZone: s.all[*in.Id].Config.PrivateZone}
		return &route53.UpdateHostedZoneCommentOutput{}, nil
	case *route53.DeleteHostedZoneInput:
		if len(s.all[*in.Id].sets) > 0 {
			return nil, fault("HostedZoneNotEmpty")
		}
		delete(s.all, *in.Id)
		return &route53.DeleteHostedZoneOutput{}, nil
	case *route53.ListResourceRecordSetsInput:
		return s.list(in)
	case *route53.ChangeResourceRecordSetsInput:
		return s.change(in)
	case *route53.GetChangeInput:
		status := types.ChangeStatusPending
		if s.changes[*in.Id].over() {
			status = types.ChangeStatusInsync
		}
		return &route53.GetChangeOutput{ChangeInfo: &types.ChangeInfo{Id: in.Id, Status: status}}, nil
	}
	return nil, nil
}

// order returns the sort key of a record in Route 53: the labels of its name from the last one, the type and the
// identifier.
func order(name, kind, identifier string) string {
	labels := strings.Split(strings.TrimSuffix(name, "."), ".")
	slices.Reverse(labels)
	return strings.Join(labels, ".") + " " + kind + " " + identifier
}

func orderOf(set types.ResourceRecordSet) string {
	return order(*set.Name, string(set.Type), sdk.ToString(set.SetIdentifier))
}

// list answers with 2 records from the start of the request, and with the start of the next ones.
func (s *dnsZones) list(in *route53.ListResourceRecordSetsInput) (any, error) {
	z := s.all[*in.HostedZoneId]
	if z == nil {
		return nil, fault("NoSuchHostedZone")
	}
	from := order(sdk.ToString(in.StartRecordName), string(in.StartRecordType), sdk.ToString(in.StartRecordIdentifier))
	var rest []types.ResourceRecordSet
	for _, set := range z.sets {
		if in.StartRecordName == nil || orderOf(set) >= from {
			rest = append(rest, set)
		}
	}
	out := &route53.ListResourceRecordSetsOutput{ResourceRecordSets: rest}
	if len(rest) > 2 {
		next := rest[2]
		out.ResourceRecordSets, out.IsTruncated = rest[:2], true
		out.NextRecordName, out.NextRecordType, out.NextRecordIdentifier = next.Name, next.Type, next.SetIdentifier
	}
	return out, nil
}

func (s *dnsZones) change(in *route53.ChangeResourceRecordSetsInput) (any, error) {
	z := s.all[*in.HostedZoneId]
	if z == nil {
		return nil, fault("NoSuchHostedZone")
	}
	for _, c := range in.ChangeBatch.Changes {
		set := *c.ResourceRecordSet
		if name := strings.TrimSuffix(*set.Name, ".") + "."; true {
			set.Name = &name
		}
		i := slices.IndexFunc(z.sets, func(o types.ResourceRecordSet) bool { return orderOf(o) == orderOf(set) })
		if i >= 0 {
			z.sets = slices.Delete(slices.Clone(z.sets), i, i+1)
		} else if c.Action == types.ChangeActionDelete {
			return nil, fault("InvalidChangeBatch")
		}
		if c.Action != types.ChangeActionDelete {
			z.sets = append(z.sets, set)
		}
	}
	slices.SortFunc(z.sets, func(a, b types.ResourceRecordSet) int { return cmp.Compare(orderOf(a), orderOf(b)) })
	s.made++
	id := fmt.Sprintf("C%03d", s.made)
	s.changes[id] = &lag{s.lag}
	return &route53.ChangeResourceRecordSetsOutput{ChangeInfo: &types.ChangeInfo{Id: &id,
		Status: types.ChangeStatusPending}}, nil
}
