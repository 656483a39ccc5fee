package dns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/aws/aws-sdk-go-v2/service/route53/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// zones returns all hosted zones of the account.
func zones(ctx context.Context, a *cloud.Account) ([]types.HostedZone, error) {
	return cloud.Remember(a, "zones", func() ([]types.HostedZone, error) {
		return cloud.Pages(func(next *string) ([]types.HostedZone, *string, error) {
			page, err := dnsOf(a).ListHostedZones(ctx, &route53.ListHostedZonesInput{Marker: next})
			if err != nil {
				return nil, nil, cloud.Failed("listing the hosted zones of", "the account", err)
			}
			return page.HostedZones, page.NextMarker, nil
		})
	})
}

func dotted(name string) string { return strings.TrimSuffix(strings.ToLower(name), ".") + "." }

// ZoneOf returns the ID of the hosted zone with a name or an ID, and the zone, or "" and nil if there is none.
func ZoneOf(ctx context.Context, a *cloud.Account, name string, private bool) (string, *types.HostedZone, error) {
	found, err := zonesNamed(ctx, a, name, private)
	if err != nil {
		return "", nil, err
	}
	return theZone(name, found)
}

// zonesNamed returns the hosted zones with a name or an ID.
func zonesNamed(ctx context.Context, a *cloud.Account, name string, private bool) ([]types.HostedZone, error) {
	all, err := zones(ctx, a)
	return slices.DeleteFunc(slices.Clone(all), func(z types.HostedZone) bool {
		return zoneID(&z) != zoneID(&types.HostedZone{Id: &name}) &&
			(dotted(sdk.ToString(z.Name)) != dotted(name) || (z.Config != nil && z.Config.PrivateZone) != private)
	}), err
}

// zoneID returns the ID of a zone without the prefix with which AWS shows it.
func zoneID(z *types.HostedZone) string {
	return strings.TrimPrefix(sdk.ToString(z.Id), "/hostedzone/")
}

// theZone returns the ID of the only zone with a name, and the zone.
func theZone(name string, found []types.HostedZone) (string, *types.HostedZone, error) {
	has, err := cloud.Only("hosted zone", name, found, func(z *types.HostedZone) *string { return sdk.String(zoneID(z)) },
		"write the ID of the zone as the zone of records, or as the domain_name of hosted_zone_absent")
	if has == nil || err != nil {
		return "", nil, err
	}
	return sdk.ToString(has.Id), has, nil
}

// zonePresent implements boto_route53.hosted_zone_present.
type zonePresent struct {
	cloud.Common
	Name      string `sls:"name"`
	Domain    string `sls:"domain_name"`
	Private   bool   `sls:"private_zone"`
	Reference string `sls:"caller_ref"`
	Comment   string `sls:"comment"`
	VPCID     string `sls:"vpc_id"`
	VPCName   string `sls:"vpc_name"`
	VPCRegion string `sls:"vpc_region"`
}

// RunsBeside implements module.Concurrent.
func (*zonePresent) RunsBeside() {}

func (z *zonePresent) domain() string {
	if z.Domain != "" {
		return dotted(z.Domain)
	}
	return dotted(z.Name)
}

// Check implements module.Resource.
func (z *zonePresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := z.Cloud.Account(ctx, "route53", z.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p, client := cloud.NewPlan(), dnsOf(a)
	id, has, err := z.find(ctx, a)
	if err != nil {
		return module.Diff{}, err
	}
	if id == "" {
		a.Expect("zone", z.domain())
		p.Create(value.NewMap("zone", z.domain(), "private_zone", z.Private, "comment", z.Comment))
		p.Then("zone made", func(ctx context.Context) error { return z.create(ctx, a, client) })
		return z.Planned(p, nil)
	}
	old := ""
	if has.Config != nil {
		old = sdk.ToString(has.Config.Comment)
	}
	if z.Comment != "" && p.Compare("comment", old, z.Comment) {
		p.Then("comment set", func(ctx context.Context) error {
			defer a.Forget("zones")
			_, err := client.UpdateHostedZoneComment(ctx, &route53.UpdateHostedZoneCommentInput{Id: &id, Comment: &z.Comment})
			return cloud.Failed("setting the comment of zone", z.domain(), err)
		})
	}
	return z.Planned(p, nil)
}

// find returns the ID of the zone, and the zone, or "" and nil if there is none. Of private zones with one name the VPC
// selects one.
func (z *zonePresent) find(ctx context.Context, a *cloud.Account) (string, *types.HostedZone, error) {
	found, err := zonesNamed(ctx, a, z.domain(), z.Private)
	if err != nil {
		return "", nil, err
	}
	if z.Private && len(found) > 1 && z.VPCID+z.VPCName != "" {
		vpc, err := network.VPCOf(ctx, a, z.VPCID, z.VPCName)
		if err != nil {
			return "", nil, err
		}
		if found, err = zonesOfVPC(ctx, a, found, vpc); err != nil { // if it has none, its zone is made
			return "", nil, err
		}
	}
	return theZone(z.domain(), found)
}

// zonesOfVPC returns the zones that a VPC uses.
func zonesOfVPC(ctx context.Context, a *cloud.Account, all []types.HostedZone, vpc string) (own []types.HostedZone,
	err error) {
	for _, one := range all {
		out, err := dnsOf(a).GetHostedZone(ctx, &route53.GetHostedZoneInput{Id: one.Id})
		if err != nil {
			return nil, cloud.Failed("reading hosted zone", zoneID(&one), err)
		}
		if slices.ContainsFunc(out.VPCs, func(v types.VPC) bool { return sdk.ToString(v.VPCId) == vpc }) {
			own = append(own, one)
		}
	}
	return own, nil
}

func (z *zonePresent) create(ctx context.Context, a *cloud.Account, client *route53.Client) error {
	defer a.Forget("zones")
	in := &route53.CreateHostedZoneInput{Name: sdk.String(z.domain()), CallerReference: &z.Reference,
		HostedZoneConfig: &types.HostedZoneConfig{Comment: &z.Comment, PrivateZone: z.Private}}
	if z.Reference == "" {
		in.CallerReference = sdk.String(fmt.Sprintf("%s %d", z.domain(), time.Now().UnixNano()))
	}
	if z.Private {
		vpc, err := network.VPCOf(ctx, a, z.VPCID, z.VPCName)
		if err != nil {
			return err
		}
		region := z.VPCRegion
		if region == "" {
			region = a.Config.Region
		}
		in.VPC = &types.VPC{VPCId: &vpc, VPCRegion: types.VPCRegion(region)}
	}
	_, err := client.CreateHostedZone(ctx, in)
	return cloud.Failed("making zone", z.domain(), err)
}

// zoneAbsent implements boto_route53.hosted_zone_absent.
type zoneAbsent struct {
	cloud.Common
	Name    string `sls:"name"`
	Domain  string `sls:"domain_name"`
	Private bool   `sls:"private_zone"`
}

// Check implements module.Resource.
func (z *zoneAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := z.Cloud.Account(ctx, "route53", z.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p, name := cloud.NewPlan(), cmp.Or(z.Domain, z.Name)
	if name == "" {
		return module.Diff{}, diag.Amazon.Hint(errors.New("no zone is named"), "give domain_name or name")
	}
	id, has, err := ZoneOf(ctx, a, name, z.Private)
	if id != "" && err == nil {
		name = sdk.ToString(has.Name)
		err = emptyZone(ctx, a, id, name)
	}
	if id != "" && err == nil {
		p.Remove(id, value.NewMap("zone", dotted(name), "private_zone", z.Private))
		p.Then("zone deleted", func(ctx context.Context) error {
			defer a.Forget("zones")
			_, err := dnsOf(a).DeleteHostedZone(ctx, &route53.DeleteHostedZoneInput{Id: &id})
			return cloud.Failed("deleting zone", name, err)
		})
	}
	return z.Planned(p, err)
}

// emptyZone returns an error if a zone has records other than those that Route 53 made with it, and that the run does
// not delete: AWS deletes no such zone.
func emptyZone(ctx context.Context, a *cloud.Account, id, name string) error {
	in := &route53.ListResourceRecordSetsInput{HostedZoneId: &id}
	all, err := cloud.Pages(func(*string) ([]types.ResourceRecordSet, *string, error) {
		out, err := dnsOf(a).ListResourceRecordSets(ctx, in)
		if err != nil {
			return nil, nil, cloud.Failed("reading the records of zone", name, err)
		}
		if !out.IsTruncated {
			return out.ResourceRecordSets, nil, nil
		}
		in.StartRecordName, in.StartRecordType = out.NextRecordName, out.NextRecordType
		in.StartRecordIdentifier = out.NextRecordIdentifier
		next := goneKey(id, sdk.ToString(in.StartRecordName), string(in.StartRecordType), in.StartRecordIdentifier)
		return out.ResourceRecordSets, &next, nil
	})
	if err != nil {
		return err
	}
	var left []string
	for _, set := range all {
		own := set.Type == types.RRTypeNs || set.Type == types.RRTypeSoa
		if own && dotted(sdk.ToString(set.Name)) == dotted(name) ||
			a.Expects(recordGone, goneKey(id, sdk.ToString(set.Name), string(set.Type), set.SetIdentifier)) {
			continue
		}
		left = append(left, string(set.Type)+" "+sdk.ToString(set.Name))
	}
	if len(left) == 0 {
		return nil
	}
	return diag.Resource.Hint(fmt.Errorf("zone %s has %s, and AWS deletes only empty zones: %s", dotted(name),
		diag.Count(len(left), "record"), strings.Join(left[:min(len(left), 5)], ", ")),
		"delete its records before it, with boto_route53.absent")
}

// recordGone is the kind of the records that the run deletes.
const recordGone = "zone record that is deleted"

// goneKey returns what distinguishes a record from all others.
func goneKey(zone, name, kind string, identifier *string) string {
	return strings.Join([]string{zone, dotted(name), kind, sdk.ToString(identifier)}, " ")
}
