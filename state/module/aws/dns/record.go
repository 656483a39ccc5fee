// Package dns has the state boto_route53: hosted zones and their records.
package dns

import (
	"context"
	"errors"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/aws/aws-sdk-go-v2/service/route53/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Route53Table returns the state functions of boto_route53.
func Route53Table(c *cloud.Cloud) module.Table {
	record := func(gone bool) func() module.Resource {
		return func() module.Resource {
			r := &recordPresent{Common: cloud.Common{Cloud: c}}
			r.Wait = true
			if gone {
				return &recordAbsent{recordPresent: *r}
			}
			return r
		}
	}
	return module.Table{
		"present": record(false), "rr_present": record(false), "absent": record(true), "rr_absent": record(true),
		"hosted_zone_present": func() module.Resource { return &zonePresent{Common: cloud.Common{Cloud: c}} },
		"hosted_zone_absent":  func() module.Resource { return &zoneAbsent{Common: cloud.Common{Cloud: c}} },
	}
}

func dnsOf(a *cloud.Account) *route53.Client { return route53.NewFromConfig(a.Client("route53")) }

// Record has the arguments of one record of a zone.
type Record struct {
	Value      any    `sls:"value"`
	Zone       string `sls:"zone"`
	Type       string `sls:"record_type"`
	Identifier any    `sls:"identifier"`
	TTL        int    `sls:"ttl"`
	Wait       bool   `sls:"wait_for_sync"`
	SplitDNS   bool   `sls:"split_dns"`
	Private    bool   `sls:"private_zone"`
	// Alias is an AWS resource that the record points to: a mapping with zone_id, dns_name and evaluate_target_health.
	Alias *value.Map `sls:"alias"`
}

// recordPresent implements boto_route53.present.
type recordPresent struct {
	cloud.Common
	Record
	Name string `sls:"name"`
}

// RunsBeside implements module.Concurrent.
func (*recordPresent) RunsBeside() {}

// Valid implements module.Validated.
func (r *recordPresent) Valid() error {
	if r.Zone == "" || r.Type == "" {
		return diag.Amazon.Hint(errors.New("a record needs zone and record_type"), "give both")
	}
	return cloud.OneOf("record_type", strings.ToUpper(r.Type), types.RRType("").Values())
}

// Check implements module.Resource.
func (r *recordPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := r.Cloud.Account(ctx, "route53", r.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p := cloud.NewPlan()
	return r.Planned(p, r.Look(ctx, p, a, r.Name, "", nil))
}

// Find returns the record with a name in a zone, or nil if there is none. Records with the same name, which differ in
// their identifiers, may fill several pages.
func (r Record) Find(ctx context.Context, a *cloud.Account, zone, name string) (*types.ResourceRecordSet, error) {
	in := &route53.ListResourceRecordSetsInput{HostedZoneId: &zone, StartRecordName: &name,
		StartRecordType: types.RRType(strings.ToUpper(r.Type)), MaxItems: sdk.Int32(100)}
	id, _ := r.identifier()
	for {
		out, err := dnsOf(a).ListResourceRecordSets(ctx, in)
		if err != nil {
			return nil, cloud.Failed("reading record", name, err)
		}
		for _, set := range out.ResourceRecordSets {
			if r.named(sdk.ToString(set.Name), string(set.Type), name) && sdk.ToString(set.SetIdentifier) == id {
				return &set, nil
			}
		}
		if !out.IsTruncated || !r.named(sdk.ToString(out.NextRecordName), string(out.NextRecordType), name) {
			return nil, nil
		}
		in.StartRecordIdentifier = out.NextRecordIdentifier
	}
}

// named reports whether a record of a zone has a name and the type of this record.
func (r Record) named(has, kind, name string) bool {
	return dotted(strings.ReplaceAll(has, `\052`, "*")) == dotted(name) && strings.EqualFold(kind, r.Type)
}

// identifier returns what distinguishes records with the same name: an ID, and a weight or a region.
func (r Record) identifier() (id, weight string) {
	parts := cloud.Texts(r.Identifier)
	if len(parts) > 0 {
		id = parts[0]
	}
	if len(parts) > 1 {
		weight = parts[1]
	}
	return id, weight
}

// values returns the values of a record. A text with commas has several values, except in TXT and SPF records.
func (r Record) values() (all []string) {
	for _, v := range cloud.Texts(r.Value) {
		if strings.EqualFold(r.Type, "TXT") || strings.EqualFold(r.Type, "SPF") {
			all = append(all, v)
			continue
		}
		for one := range strings.SplitSeq(v, ",") {
			all = append(all, strings.TrimSpace(one))
		}
	}
	return all
}

// Look plans a record. prefix is put before the names of its fields. resolve returns the value of a record that points
// to a resource which the run may make; it is nil if the arguments have the value.
func (r Record) Look(ctx context.Context, p *cloud.Plan, a *cloud.Account, name, prefix string,
	resolve func(context.Context) (string, error)) error {
	zone, _, err := ZoneOf(ctx, a, r.Zone, r.Private)
	if err != nil {
		return err
	}
	if zone == "" && !a.Expects("zone", dotted(r.Zone)) {
		return cloud.Missing("hosted zone", r.Zone, "boto_route53.hosted_zone_present")
	}
	want, err := r.wanted(ctx, resolve)
	if err != nil {
		return err
	}
	var has *types.ResourceRecordSet
	if zone != "" {
		if has, err = r.Find(ctx, a, zone, name); err != nil {
			return err
		}
	}
	switch {
	case has == nil && prefix == "":
		p.Create(want)
		p.New.Set("record", name)
	case has == nil:
		p.Differ(prefix+name, nil, want)
	default:
		same, now := true, RecordFields(*has)
		for _, field := range want.Names() {
			same = !p.Compare(prefix+field, now.Value(field), want.Value(field)) && same
		}
		if same {
			return nil
		}
	}
	p.Then("record set", func(ctx context.Context) error {
		want, err := r.wanted(ctx, resolve)
		if err != nil {
			return err
		}
		return r.change(ctx, a, types.ChangeActionUpsert, r.set(name, want))
	})
	return nil
}

// recordAbsent implements boto_route53.absent.
type recordAbsent struct{ recordPresent }

// Check implements module.Resource.
func (r *recordAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := r.Cloud.Account(ctx, "route53", r.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p := cloud.NewPlan()
	zone, _, err := ZoneOf(ctx, a, r.Zone, r.Private)
	if zone == "" || err != nil {
		return r.Planned(p, err)
	}
	has, err := r.Find(ctx, a, zone, r.Name)
	if has != nil && err == nil {
		a.Expect(recordGone, goneKey(zone, sdk.ToString(has.Name), string(has.Type), has.SetIdentifier))
		fields := value.NewMap("record", r.Name)
		fields.Update(RecordFields(*has))
		p.Remove(zone, fields)
		p.Then("record deleted", func(ctx context.Context) error { return r.change(ctx, a, types.ChangeActionDelete, *has) })
	}
	return r.Planned(p, err)
}
