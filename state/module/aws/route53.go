package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/aws/aws-sdk-go-v2/service/route53/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func route53Table(c *Cloud) module.Table {
	record := func(gone bool) func() module.Resource {
		return func() module.Resource {
			r := &recordPresent{common: common{cloud: c}}
			r.Wait = true
			if gone {
				return &recordAbsent{recordPresent: *r}
			}
			return r
		}
	}
	return module.Table{
		"present": record(false), "rr_present": record(false), "absent": record(true), "rr_absent": record(true),
		"hosted_zone_present": func() module.Resource { return &zonePresent{common: common{cloud: c}} },
		"hosted_zone_absent":  func() module.Resource { return &zoneAbsent{common: common{cloud: c}} },
	}
}

func dnsOf(a *account) *route53.Client { return route53.NewFromConfig(a.client("route53")) }

// record is one record of a zone as arguments have it.
type record struct {
	Value      any    `sls:"value"`
	Zone       string `sls:"zone"`
	Type       string `sls:"record_type"`
	Identifier any    `sls:"identifier"`
	TTL        int    `sls:"ttl"`
	Wait       bool   `sls:"wait_for_sync"`
	SplitDNS   bool   `sls:"split_dns"`
	Private    bool   `sls:"private_zone"`
	// Alias is a target of AWS: a mapping with zone_id, dns_name and evaluate_target_health.
	Alias *value.Map `sls:"alias"`
}

// recordPresent is boto_route53.present.
type recordPresent struct {
	common
	record
	Name string `sls:"name"`
}

// RunsBeside implements module.Concurrent.
func (*recordPresent) RunsBeside() {}

// Valid implements module.Validated.
func (r *recordPresent) Valid() error {
	if r.Zone == "" || r.Type == "" {
		return diag.WithHint(errors.New("a record needs zone and record_type"), "give both")
	}
	return nil
}

// Check implements module.Resource.
func (r *recordPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := r.cloud.account(ctx, "route53", r.Account)
	if err != nil {
		return module.Diff{}, err
	}
	p := newPlan()
	return r.check(p, r.look(ctx, p, a, r.Name, "", nil))
}

// zones are all hosted zones.
func zones(ctx context.Context, a *account) ([]types.HostedZone, error) {
	return remember(a, "zones", func() ([]types.HostedZone, error) {
		return pages(func(next *string) ([]types.HostedZone, *string, error) {
			page, err := dnsOf(a).ListHostedZones(ctx, &route53.ListHostedZonesInput{Marker: next})
			if err != nil {
				return nil, nil, failed("listing the hosted zones of", "the account", err)
			}
			return page.HostedZones, page.NextMarker, nil
		})
	})
}

func dotted(name string) string { return strings.TrimSuffix(strings.ToLower(name), ".") + "." }

// zoneOf is the ID of a zone by its name; "" for none.
func zoneOf(ctx context.Context, a *account, name string, private bool) (string, *types.HostedZone, error) {
	all, err := zones(ctx, a)
	if err != nil {
		return "", nil, err
	}
	for _, z := range all {
		if dotted(sdk.ToString(z.Name)) == dotted(name) && (z.Config != nil && z.Config.PrivateZone) == private {
			return sdk.ToString(z.Id), &z, nil
		}
	}
	return "", nil, nil
}

// find reads the record of a zone. Records of one name, which have identifiers, may fill several pages.
func (r record) find(ctx context.Context, a *account, zone, name string) (*types.ResourceRecordSet, error) {
	in := &route53.ListResourceRecordSetsInput{HostedZoneId: &zone, StartRecordName: &name,
		StartRecordType: types.RRType(strings.ToUpper(r.Type)), MaxItems: sdk.Int32(100)}
	id, _ := r.identifier()
	for {
		out, err := dnsOf(a).ListResourceRecordSets(ctx, in)
		if err != nil {
			return nil, failed("reading record", name, err)
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

// named reports whether a record of a zone has the name and the type of this one.
func (r record) named(has, kind, name string) bool {
	return dotted(strings.ReplaceAll(has, `\052`, "*")) == dotted(name) && strings.EqualFold(kind, r.Type)
}

// identifier is what tells records of one name apart: an ID, and a weight or a region.
func (r record) identifier() (id, weight string) {
	parts := texts(r.Identifier)
	if len(parts) > 0 {
		id = parts[0]
	}
	if len(parts) > 1 {
		weight = parts[1]
	}
	return id, weight
}

// values are the values of a record: one that spans commas or lines is several.
func (r record) values() (all []string) {
	for _, v := range texts(r.Value) {
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

// look plans a record. prefix is put before its fields. resolve gives the value of a record that points to what the run
// makes; nil for the value of the arguments.
func (r record) look(ctx context.Context, p *plan, a *account, name, prefix string,
	resolve func(context.Context) (string, error)) error {
	zone, _, err := zoneOf(ctx, a, r.Zone, r.Private)
	if err != nil {
		return err
	}
	if zone == "" && !a.expects("zone", dotted(r.Zone)) {
		return missing("hosted zone", r.Zone, "boto_route53.hosted_zone_present")
	}
	want, err := r.wanted(ctx, resolve)
	if err != nil {
		return err
	}
	var has *types.ResourceRecordSet
	if zone != "" {
		if has, err = r.find(ctx, a, zone, name); err != nil {
			return err
		}
	}
	switch {
	case has == nil && prefix == "":
		p.create(want)
		p.new.Set("record", name)
	case has == nil:
		p.differ(prefix+name, nil, want)
	default:
		same, now := true, recordFields(*has)
		for _, field := range want.Names() {
			same = !p.compare(prefix+field, now.Value(field), want.Value(field)) && same
		}
		if same {
			return nil
		}
	}
	p.then("record set", func(ctx context.Context) error {
		want, err := r.wanted(ctx, resolve)
		if err != nil {
			return err
		}
		return r.change(ctx, a, types.ChangeActionUpsert, r.set(name, want))
	})
	return nil
}

// wanted are the fields of the record as declared.
func (r record) wanted(ctx context.Context, resolve func(context.Context) (string, error)) (*value.Map, error) {
	want := value.NewMap("record_type", strings.ToUpper(r.Type))
	id, weight := r.identifier()
	if id != "" {
		want.Set("identifier", id)
	}
	if _, err := strconv.Atoi(weight); err == nil && weight != "" {
		want.Set("weight", weight)
	} else if weight != "" {
		want.Set("region", weight)
	}
	if r.Alias != nil {
		want.Set("alias", value.NewMap("zone_id", text(r.Alias, "zone_id"), "dns_name", dotted(text(r.Alias, "dns_name")),
			"evaluate_target_health", value.Truth(r.Alias.Value("evaluate_target_health"))))
		return want, nil
	}
	values := r.values()
	if resolve != nil {
		v, err := resolve(ctx)
		if err != nil {
			return nil, err
		}
		values = []string{v}
	}
	if r.TTL > 0 {
		want.Set("ttl", r.TTL)
	}
	if strings.EqualFold(r.Type, "CNAME") {
		for i := range values {
			values[i] = strings.TrimSuffix(values[i], ".")
		}
	}
	want.Set("value", sorted(values))
	return want, nil
}

func recordFields(set types.ResourceRecordSet) *value.Map {
	m := value.NewMap("record_type", string(set.Type), "identifier", sdk.ToString(set.SetIdentifier), "ttl",
		int(sdk.ToInt64(set.TTL)))
	if set.Weight != nil {
		m.Set("weight", strconv.FormatInt(*set.Weight, 10))
	}
	if set.Region != "" {
		m.Set("region", string(set.Region))
	}
	if t := set.AliasTarget; t != nil {
		m.Set("alias", value.NewMap("zone_id", sdk.ToString(t.HostedZoneId), "dns_name", dotted(sdk.ToString(t.DNSName)),
			"evaluate_target_health", t.EvaluateTargetHealth))
	}
	var values []string
	for _, r := range set.ResourceRecords {
		v := sdk.ToString(r.Value)
		if set.Type == types.RRTypeCname {
			v = strings.TrimSuffix(v, ".")
		}
		values = append(values, v)
	}
	m.Set("value", sorted(values))
	return m
}

// set is a record as AWS takes it.
func (r record) set(name string, want *value.Map) types.ResourceRecordSet {
	set := types.ResourceRecordSet{Name: &name, Type: types.RRType(text(want, "record_type"))}
	if id := text(want, "identifier"); id != "" {
		set.SetIdentifier = &id
	}
	if n, err := strconv.ParseInt(text(want, "weight"), 10, 64); err == nil {
		set.Weight = &n
	}
	set.Region = types.ResourceRecordSetRegion(text(want, "region"))
	if alias := mapOf(want.Value("alias")); alias != nil {
		set.AliasTarget = &types.AliasTarget{HostedZoneId: sdk.String(text(alias, "zone_id")),
			DNSName:              sdk.String(text(alias, "dns_name")),
			EvaluateTargetHealth: value.Truth(alias.Value("evaluate_target_health"))}
		return set
	}
	set.TTL = sdk.Int64(60)
	if r.TTL > 0 {
		set.TTL = sdk.Int64(int64(r.TTL))
	}
	for _, v := range texts(want.Value("value")) {
		set.ResourceRecords = append(set.ResourceRecords, types.ResourceRecord{Value: sdk.String(v)})
	}
	return set
}

// change sends a change and waits until all name servers have it.
func (r record) change(ctx context.Context, a *account, action types.ChangeAction, set types.ResourceRecordSet) error {
	name := sdk.ToString(set.Name)
	zone, _, err := zoneOf(ctx, a, r.Zone, r.Private)
	if err != nil {
		return err
	}
	if zone == "" {
		return missing("hosted zone", r.Zone, "boto_route53.hosted_zone_present")
	}
	client := dnsOf(a)
	out, err := client.ChangeResourceRecordSets(ctx, &route53.ChangeResourceRecordSetsInput{HostedZoneId: &zone,
		ChangeBatch: &types.ChangeBatch{Changes: []types.Change{{Action: action, ResourceRecordSet: &set}}}})
	if err != nil {
		return failed("changing record", name, err)
	}
	if !r.Wait || out.ChangeInfo == nil || out.ChangeInfo.Status == types.ChangeStatusInsync {
		return nil
	}
	return waitFor(ctx, "the name servers have record "+name, 10*time.Minute, func(ctx context.Context) (bool, error) {
		now, err := client.GetChange(ctx, &route53.GetChangeInput{Id: out.ChangeInfo.Id})
		if err != nil {
			return false, failed("waiting for record", name, err)
		}
		return now.ChangeInfo.Status == types.ChangeStatusInsync, nil
	})
}

// recordAbsent is boto_route53.absent.
type recordAbsent struct{ recordPresent }

// Check implements module.Resource.
func (r *recordAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := r.cloud.account(ctx, "route53", r.Account)
	if err != nil {
		return module.Diff{}, err
	}
	p := newPlan()
	zone, _, err := zoneOf(ctx, a, r.Zone, r.Private)
	if zone == "" || err != nil {
		return r.check(p, err)
	}
	has, err := r.find(ctx, a, zone, r.Name)
	if has != nil && err == nil {
		p.remove(value.NewMap("record", r.Name, "record_type", r.Type))
		p.then("record deleted", func(ctx context.Context) error { return r.change(ctx, a, types.ChangeActionDelete, *has) })
	}
	return r.check(p, err)
}

// zonePresent is boto_route53.hosted_zone_present.
type zonePresent struct {
	common
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
	a, err := z.cloud.account(ctx, "route53", z.Account)
	if err != nil {
		return module.Diff{}, err
	}
	p, client := newPlan(), dnsOf(a)
	id, has, err := zoneOf(ctx, a, z.domain(), z.Private)
	if err != nil {
		return module.Diff{}, err
	}
	if id == "" {
		a.expect("zone", z.domain())
		p.create(value.NewMap("zone", z.domain(), "private_zone", z.Private, "comment", z.Comment))
		p.then("zone made", func(ctx context.Context) error { return z.create(ctx, a, client) })
		return z.check(p, nil)
	}
	old := ""
	if has.Config != nil {
		old = sdk.ToString(has.Config.Comment)
	}
	if z.Comment != "" && p.compare("comment", old, z.Comment) {
		p.then("comment set", func(ctx context.Context) error {
			defer a.forget("zones")
			_, err := client.UpdateHostedZoneComment(ctx, &route53.UpdateHostedZoneCommentInput{Id: &id, Comment: &z.Comment})
			return failed("setting the comment of zone", z.domain(), err)
		})
	}
	return z.check(p, nil)
}

func (z *zonePresent) create(ctx context.Context, a *account, client *route53.Client) error {
	defer a.forget("zones")
	in := &route53.CreateHostedZoneInput{Name: sdk.String(z.domain()), CallerReference: &z.Reference,
		HostedZoneConfig: &types.HostedZoneConfig{Comment: &z.Comment, PrivateZone: z.Private}}
	if z.Reference == "" {
		in.CallerReference = sdk.String(fmt.Sprintf("%s %d", z.domain(), time.Now().UnixNano()))
	}
	if z.Private {
		vpc, err := vpcOf(ctx, a, z.VPCID, z.VPCName)
		if err != nil {
			return err
		}
		region := z.VPCRegion
		if region == "" {
			region = a.config.Region
		}
		in.VPC = &types.VPC{VPCId: &vpc, VPCRegion: types.VPCRegion(region)}
	}
	_, err := client.CreateHostedZone(ctx, in)
	return failed("making zone", z.domain(), err)
}

// zoneAbsent is boto_route53.hosted_zone_absent.
type zoneAbsent struct {
	common
	Name    string `sls:"name"`
	Domain  string `sls:"domain_name"`
	Private bool   `sls:"private_zone"`
}

// Check implements module.Resource.
func (z *zoneAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := z.cloud.account(ctx, "route53", z.Account)
	if err != nil {
		return module.Diff{}, err
	}
	p, name := newPlan(), slices.DeleteFunc([]string{z.Domain, z.Name}, func(s string) bool { return s == "" })[0]
	id, _, err := zoneOf(ctx, a, name, z.Private)
	if id != "" && err == nil {
		p.remove(value.NewMap("zone", dotted(name)))
		p.then("zone deleted", func(ctx context.Context) error {
			defer a.forget("zones")
			_, err := dnsOf(a).DeleteHostedZone(ctx, &route53.DeleteHostedZoneInput{Id: &id})
			return failed("deleting zone", name, err)
		})
	}
	return z.check(p, err)
}
