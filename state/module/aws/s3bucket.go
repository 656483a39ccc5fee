package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func s3BucketTable(c *Cloud) module.Table {
	return module.Table{
		"present": func() module.Resource { return &bucketPresent{common: common{cloud: c}} },
		"absent":  func() module.Resource { return &bucketAbsent{common: common{cloud: c}} },
	}
}

func s3Of(a *account) *s3.Client {
	// emulators have one name
	return s3.NewFromConfig(a.client("s3"), func(o *s3.Options) { o.UsePathStyle = o.BaseEndpoint != nil })
}

// bucketPresent is boto_s3_bucket.present. An argument that is not given is not managed; an empty one removes what is
// there.
type bucketPresent struct {
	common
	Name          string     `sls:"name"`
	Bucket        string     `sls:"Bucket,required"`
	Location      string     `sls:"LocationConstraint"`
	ACL           *value.Map `sls:"ACL"`
	CORS          []any      `sls:"CORSRules"`
	Lifecycle     []any      `sls:"LifecycleConfiguration"`
	Logging       *value.Map `sls:"Logging"`
	Notifications *value.Map `sls:"NotificationConfiguration"`
	Policy        any        `sls:"Policy"`
	Replication   *value.Map `sls:"Replication"`
	Payment       *value.Map `sls:"RequestPayment"`
	Tagging       *value.Map `sls:"Tagging"`
	Versioning    *value.Map `sls:"Versioning"`
	Website       *value.Map `sls:"Website"`
}

// RunsBeside implements module.Concurrent.
func (*bucketPresent) RunsBeside() {}

// Valid implements module.Validated.
func (b *bucketPresent) Valid() error {
	_, err := b.parts()
	return err
}

// Check implements module.Resource.
func (b *bucketPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return b.check(b.look(ctx))
}

// bucketPart is one configuration of a bucket.
type bucketPart struct {
	field string
	want  any // as read from AWS it would be
	get   func(ctx context.Context, c *s3.Client) (any, error)
	put   func(ctx context.Context, c *s3.Client) error
	drop  func(ctx context.Context, c *s3.Client) error // nil: put removes as well
}

// there reports whether a bucket is there, and where.
func bucketThere(ctx context.Context, a *account, name string) (bool, string, error) {
	out, err := s3Of(a).HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &name})
	switch {
	case code(err, "NotFound", "NoSuchBucket"):
		return false, "", nil
	case code(err, "Forbidden", "AccessDenied"):
		return false, "",
			diag.WithHint(fmt.Errorf("bucket %s may not be read: it belongs to another account, or a policy forbids it", name),
				"names of buckets are shared by all accounts: choose another one, or allow s3:ListBucket")
	case err != nil:
		return false, "", failed("reading bucket", name, err)
	}
	return true, sdk.ToString(out.BucketRegion), nil
}

func (b *bucketPresent) look(ctx context.Context) (*plan, error) {
	a, err := b.cloud.account(ctx, "s3", b.Account)
	if err != nil {
		return nil, err
	}
	p := newPlan()
	there, region, err := bucketThere(ctx, a, b.Bucket)
	if err != nil {
		return nil, err
	}
	parts, err := b.parts()
	if err != nil {
		return nil, err
	}
	if !there {
		b.create(p, a)
	} else if want := b.region(a); b.Location != "" && region != "" && region != want {
		p.warnings = append(p.warnings, "LocationConstraint is "+region+" and cannot be changed")
	}
	client := s3Of(a)
	for _, part := range parts {
		if err := part.look(ctx, p, client, b.Bucket); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (b *bucketPresent) region(a *account) string {
	switch b.Location {
	case "":
		return a.config.Region
	case "EU":
		return "eu-west-1"
	}
	return b.Location
}

func (b *bucketPresent) create(p *plan, a *account) {
	p.create(value.NewMap("bucket", b.Bucket, "region", b.region(a)))
	p.then("bucket made", func(ctx context.Context) error {
		in := &s3.CreateBucketInput{Bucket: &b.Bucket}
		if r := b.region(a); r != "us-east-1" {
			in.CreateBucketConfiguration = &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraint(r)}
		}
		if text(b.ACL, "ACL") != "private" && b.ACL.Len() > 0 {
			in.ObjectOwnership = types.ObjectOwnershipObjectWriter // else buckets take no lists of rights
		}
		_, err := s3Of(a).CreateBucket(ctx, in)
		if err != nil && !code(err, "BucketAlreadyOwnedByYou") {
			return failed("making bucket", b.Bucket, err)
		}
		return waitFor(ctx, "bucket "+b.Bucket+" is seen", soon, func(ctx context.Context) (bool, error) {
			there, _, err := bucketThere(ctx, a, b.Bucket)
			return there, err
		})
	})
}

// look plans one configuration.
func (part bucketPart) look(ctx context.Context, p *plan, client *s3.Client, bucket string) error {
	var has any
	if !p.made {
		found, err := part.get(ctx, client)
		if err != nil && !code(err, "NoSuchCORSConfiguration", "NoSuchLifecycleConfiguration", "NoSuchBucketPolicy",
			"NoSuchTagSet", "ReplicationConfigurationNotFoundError", "NoSuchWebsiteConfiguration") {
			return failed("reading "+part.field+" of bucket", bucket, err)
		}
		if err == nil {
			has = found
		}
	}
	has, want := comparable(has), comparable(part.want)
	if !mentions(want, "ID") {
		has = without(has, "ID", "Id")
	}
	if empty(has) && empty(want) || samePolicy(has, want) {
		return nil
	}
	p.differ(part.field, has, want)
	do := part.put
	if empty(want) && part.drop != nil {
		do = part.drop
	}
	p.then(part.field+" set", func(ctx context.Context) error {
		return failed("setting "+part.field+" of bucket", bucket, do(ctx, client))
	})
	return nil
}

// comparable is a configuration as it is compared: a prefix of a lifecycle is a filter.
func comparable(v any) any {
	v = filled(v)
	list, ok := v.(*value.List)
	if !ok {
		return v
	}
	for _, item := range list.Items {
		if m := mapOf(item); m.Has("Prefix") && m.Has("Status") {
			m.Set("Filter", value.NewMap("Prefix", m.Value("Prefix")))
			m.Delete("Prefix")
		}
	}
	return v
}

// mentions reports whether a key stands anywhere in a value.
func mentions(v any, key string) bool {
	switch v := v.(type) {
	case *value.Map:
		for k, item := range v.All() {
			if strings.EqualFold(value.Str(k), key) || mentions(item, key) {
				return true
			}
		}
	case *value.List:
		return slices.ContainsFunc(v.Items, func(item any) bool { return mentions(item, key) })
	}
	return false
}

// without drops keys from the mappings of a list, or of the lists of a mapping: AWS gives rules IDs of its own.
func without(v any, keys ...string) any {
	switch v := v.(type) {
	case *value.Map:
		for _, key := range keys {
			v.Delete(key)
		}
		for _, item := range v.All() {
			without(item, keys...)
		}
	case *value.List:
		for _, item := range v.Items {
			without(item, keys...)
		}
	}
	return v
}

// parts are the configurations that are declared.
func (b *bucketPresent) parts() (all []bucketPart, err error) {
	for _, make := range []func() (*bucketPart, error){b.acl, b.cors, b.lifecycle, b.logging, b.notifications, b.policy,
		b.versioning, b.replication, b.payment, b.tagging, b.website} { // versioning comes before replication, which needs it
		part, err := make()
		if err != nil {
			return nil, err
		}
		if part != nil {
			all = append(all, *part)
		}
	}
	return all, nil
}

const allUsers = "http://acs.amazonaws.com/groups/global/AllUsers"

// cannedRights are what a name of rights gives beyond those of the owner.
var cannedRights = map[string][][2]string{
	"private": nil, "public-read": {{allUsers, "READ"}}, "public-read-write": {{allUsers, "READ"}, {allUsers, "WRITE"}},
	"authenticated-read": {{"http://acs.amazonaws.com/groups/global/AuthenticatedUsers", "READ"}},
	"log-delivery-write": {{"http://acs.amazonaws.com/groups/s3/LogDelivery", "READ_ACP"},
		{"http://acs.amazonaws.com/groups/s3/LogDelivery", "WRITE"}},
	"aws-exec-read": {{"6aa5a366c34c1cbe25dc49211496e913e0351eb0e8c37aa3477e40942ec6b97c", "READ"}},
}

func (b *bucketPresent) acl() (*bucketPart, error) {
	if b.ACL == nil {
		return nil, nil
	}
	want := value.NewList()
	in := &s3.PutBucketAclInput{Bucket: &b.Bucket}
	policy := b.ACL.Value("AccessControlPolicy")
	if policy != nil {
		in.AccessControlPolicy = &types.AccessControlPolicy{}
		if err := intoSDK("ACL", policy, in.AccessControlPolicy); err != nil {
			return nil, err
		}
		want = rights(in.AccessControlPolicy.Grants, in.AccessControlPolicy.Owner)
	}
	if name := text(b.ACL, "ACL"); name != "" {
		known, ok := cannedRights[name]
		if !ok {
			return nil,
				diag.WithHint(fmt.Errorf("there is no ACL %s", name), "write private, public-read or another one that S3 knows")
		}
		in.ACL = types.BucketCannedACL(name)
		for _, r := range known {
			want.Append(r[0] + " " + r[1])
		}
	}
	for _, f := range []struct {
		field, permission string
		to                **string
	}{{"GrantFullControl", "FULL_CONTROL", &in.GrantFullControl}, {"GrantRead", "READ", &in.GrantRead},
		{"GrantReadACP", "READ_ACP", &in.GrantReadACP}, {"GrantWrite", "WRITE", &in.GrantWrite},
		{"GrantWriteACP", "WRITE_ACP", &in.GrantWriteACP}} {
		given := text(b.ACL, f.field)
		if given == "" {
			continue
		}
		*f.to = &given
		for one := range strings.SplitSeq(given, ",") {
			_, who, _ := strings.Cut(one, "=")
			want.Append(strings.Trim(who, `" `) + " " + f.permission)
		}
	}
	return &bucketPart{field: "ACL", want: want,
		get: func(ctx context.Context, c *s3.Client) (any, error) {
			out, err := c.GetBucketAcl(ctx, &s3.GetBucketAclInput{Bucket: &b.Bucket})
			if err != nil {
				return nil, err
			}
			return rights(out.Grants, out.Owner), nil
		},
		put: func(ctx context.Context, c *s3.Client) error {
			_, err := c.PutBucketAcl(ctx, in)
			if code(err, "AccessControlListNotSupported") {
				return diag.WithHint(err, "the bucket takes no ACLs: set its object ownership to ObjectWriter, or use Policy")
			}
			return err
		}}, nil
}

// rights are grants as texts, without the owner's.
func rights(grants []types.Grant, owner *types.Owner) *value.List {
	all := value.NewList()
	for _, g := range grants {
		if g.Grantee == nil || owner != nil && g.Grantee.ID != nil && sdk.ToString(g.Grantee.ID) == sdk.ToString(owner.ID) {
			continue
		}
		all.Append(sdk.ToString(g.Grantee.ID) + sdk.ToString(g.Grantee.URI) + sdk.ToString(g.Grantee.EmailAddress) + " " +
			string(g.Permission))
	}
	return all
}

func (b *bucketPresent) cors() (*bucketPart, error) {
	if b.CORS == nil {
		return nil, nil
	}
	in := &types.CORSConfiguration{}
	if err := intoSDK("CORSRules", value.NewList(b.CORS...), &in.CORSRules); err != nil {
		return nil, err
	}
	return &bucketPart{field: "CORSRules", want: value.NewList(b.CORS...),
		get: func(ctx context.Context, c *s3.Client) (any, error) {
			out, err := c.GetBucketCors(ctx, &s3.GetBucketCorsInput{Bucket: &b.Bucket})
			if err != nil {
				return nil, err
			}
			return fromSDK(out.CORSRules)
		},
		put: func(ctx context.Context, c *s3.Client) error {
			_, err := c.PutBucketCors(ctx, &s3.PutBucketCorsInput{Bucket: &b.Bucket, CORSConfiguration: in})
			return err
		},
		drop: func(ctx context.Context, c *s3.Client) error {
			_, err := c.DeleteBucketCors(ctx, &s3.DeleteBucketCorsInput{Bucket: &b.Bucket})
			return err
		}}, nil
}

func (b *bucketPresent) lifecycle() (*bucketPart, error) {
	if b.Lifecycle == nil {
		return nil, nil
	}
	in := &types.BucketLifecycleConfiguration{}
	if err := intoSDK("LifecycleConfiguration", value.NewList(b.Lifecycle...), &in.Rules); err != nil {
		return nil, err
	}
	return &bucketPart{field: "LifecycleConfiguration", want: value.NewList(b.Lifecycle...),
		get: func(ctx context.Context, c *s3.Client) (any, error) {
			out, err := c.GetBucketLifecycleConfiguration(ctx, &s3.GetBucketLifecycleConfigurationInput{Bucket: &b.Bucket})
			if err != nil {
				return nil, err
			}
			return fromSDK(out.Rules)
		},
		put: func(ctx context.Context, c *s3.Client) error {
			_, err := c.PutBucketLifecycleConfiguration(ctx, &s3.PutBucketLifecycleConfigurationInput{Bucket: &b.Bucket,
				LifecycleConfiguration: in})
			return err
		},
		drop: func(ctx context.Context, c *s3.Client) error {
			_, err := c.DeleteBucketLifecycle(ctx, &s3.DeleteBucketLifecycleInput{Bucket: &b.Bucket})
			return err
		}}, nil
}

func (b *bucketPresent) logging() (*bucketPart, error) {
	if b.Logging == nil {
		return nil, nil
	}
	in := &types.BucketLoggingStatus{}
	if b.Logging.Len() > 0 {
		in.LoggingEnabled = &types.LoggingEnabled{}
		if err := intoSDK("Logging", b.Logging, in.LoggingEnabled); err != nil {
			return nil, err
		}
	}
	return &bucketPart{field: "Logging", want: b.Logging,
		get: func(ctx context.Context, c *s3.Client) (any, error) {
			out, err := c.GetBucketLogging(ctx, &s3.GetBucketLoggingInput{Bucket: &b.Bucket})
			if err != nil || out.LoggingEnabled == nil {
				return nil, err
			}
			return fromSDK(out.LoggingEnabled)
		},
		put: func(ctx context.Context, c *s3.Client) error {
			_, err := c.PutBucketLogging(ctx, &s3.PutBucketLoggingInput{Bucket: &b.Bucket, BucketLoggingStatus: in})
			return err
		}}, nil
}

func (b *bucketPresent) notifications() (*bucketPart, error) {
	if b.Notifications == nil {
		return nil, nil
	}
	in := &types.NotificationConfiguration{}
	if err := intoSDK("NotificationConfiguration", b.Notifications, in); err != nil {
		return nil, err
	}
	return &bucketPart{field: "NotificationConfiguration", want: b.Notifications,
		get: func(ctx context.Context, c *s3.Client) (any, error) {
			out, err := c.GetBucketNotificationConfiguration(ctx, &s3.GetBucketNotificationConfigurationInput{Bucket: &b.Bucket})
			if err != nil {
				return nil, err
			}
			return fromSDK(types.NotificationConfiguration{LambdaFunctionConfigurations: out.LambdaFunctionConfigurations,
				QueueConfigurations: out.QueueConfigurations, TopicConfigurations: out.TopicConfigurations})
		},
		put: func(ctx context.Context, c *s3.Client) error {
			_, err := c.PutBucketNotificationConfiguration(ctx, &s3.PutBucketNotificationConfigurationInput{Bucket: &b.Bucket,
				NotificationConfiguration: in})
			return err
		}}, nil
}

func (b *bucketPresent) policy() (*bucketPart, error) {
	if b.Policy == nil {
		return nil, nil
	}
	want := b.Policy
	if given, ok := b.Policy.(string); ok && given != "" {
		v, err := value.FromJSON([]byte(given))
		if err != nil {
			return nil, diag.WithHint(fmt.Errorf("Policy: %w", err), "write it as a mapping, or as JSON")
		}
		want = v
	}
	doc, err := attributeText(want)
	if err != nil {
		return nil, err
	}
	return &bucketPart{field: "Policy", want: want,
		get: func(ctx context.Context, c *s3.Client) (any, error) {
			out, err := c.GetBucketPolicy(ctx, &s3.GetBucketPolicyInput{Bucket: &b.Bucket})
			if err != nil {
				return nil, err
			}
			return value.FromJSON([]byte(sdk.ToString(out.Policy)))
		},
		put: func(ctx context.Context, c *s3.Client) error {
			_, err := c.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: &b.Bucket, Policy: &doc})
			return err
		},
		drop: func(ctx context.Context, c *s3.Client) error {
			_, err := c.DeleteBucketPolicy(ctx, &s3.DeleteBucketPolicyInput{Bucket: &b.Bucket})
			return err
		}}, nil
}

func (b *bucketPresent) versioning() (*bucketPart, error) {
	if b.Versioning == nil {
		return nil, nil
	}
	in := &types.VersioningConfiguration{}
	if err := intoSDK("Versioning", b.Versioning, in); err != nil {
		return nil, err
	}
	if in.Status == "" {
		return nil, diag.WithHint(errors.New("Versioning lacks its Status"), "write Enabled or Suspended")
	}
	return &bucketPart{field: "Versioning", want: value.NewMap("Status", string(in.Status)),
		get: func(ctx context.Context, c *s3.Client) (any, error) {
			out, err := c.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: &b.Bucket})
			if err != nil {
				return nil, err
			}
			return value.NewMap("Status", string(out.Status)), nil
		},
		put: func(ctx context.Context, c *s3.Client) error {
			_, err := c.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{Bucket: &b.Bucket, VersioningConfiguration: in})
			return err
		}}, nil
}

func (b *bucketPresent) replication() (*bucketPart, error) {
	if b.Replication == nil {
		return nil, nil
	}
	in := &types.ReplicationConfiguration{}
	if err := intoSDK("Replication", b.Replication, in); err != nil {
		return nil, err
	}
	return &bucketPart{field: "Replication", want: b.Replication,
		get: func(ctx context.Context, c *s3.Client) (any, error) {
			out, err := c.GetBucketReplication(ctx, &s3.GetBucketReplicationInput{Bucket: &b.Bucket})
			if err != nil || out.ReplicationConfiguration == nil {
				return nil, err
			}
			return b.roleName(out.ReplicationConfiguration)
		},
		put: func(ctx context.Context, c *s3.Client) error {
			role, err := b.roleARN(ctx, sdk.ToString(in.Role))
			if err != nil {
				return err
			}
			in.Role = &role
			_, err = c.PutBucketReplication(ctx, &s3.PutBucketReplicationInput{Bucket: &b.Bucket, ReplicationConfiguration: in})
			return err
		},
		drop: func(ctx context.Context, c *s3.Client) error {
			_, err := c.DeleteBucketReplication(ctx, &s3.DeleteBucketReplicationInput{Bucket: &b.Bucket})
			return err
		}}, nil
}

// roleName is a replication with the role as it is declared: by its name, or by its ARN.
func (b *bucketPresent) roleName(has *types.ReplicationConfiguration) (any, error) {
	if arn := sdk.ToString(has.Role); !strings.HasPrefix(text(b.Replication, "Role"), "arn:") {
		has.Role = sdk.String(arn[strings.LastIndexByte(arn, '/')+1:])
	}
	return fromSDK(has)
}

func (b *bucketPresent) roleARN(ctx context.Context, name string) (string, error) {
	if strings.HasPrefix(name, "arn:") {
		return name, nil
	}
	number, err := asked{b.cloud}.accountID(ctx, b.Region, b.Key, b.KeyID, b.Profile)
	return "arn:aws:iam::" + number + ":role/" + name, err
}

func (b *bucketPresent) payment() (*bucketPart, error) {
	if b.Payment == nil {
		return nil, nil
	}
	in := &types.RequestPaymentConfiguration{}
	if err := intoSDK("RequestPayment", b.Payment, in); err != nil {
		return nil, err
	}
	return &bucketPart{field: "RequestPayment", want: b.Payment,
		get: func(ctx context.Context, c *s3.Client) (any, error) {
			out, err := c.GetBucketRequestPayment(ctx, &s3.GetBucketRequestPaymentInput{Bucket: &b.Bucket})
			if err != nil {
				return nil, err
			}
			return value.NewMap("Payer", string(out.Payer)), nil
		},
		put: func(ctx context.Context, c *s3.Client) error {
			_, err := c.PutBucketRequestPayment(ctx,
				&s3.PutBucketRequestPaymentInput{Bucket: &b.Bucket, RequestPaymentConfiguration: in})
			return err
		}}, nil
}

func (b *bucketPresent) tagging() (*bucketPart, error) {
	if b.Tagging == nil {
		return nil, nil
	}
	in, want := &types.Tagging{}, value.NewMap()
	for key, v := range b.Tagging.All() {
		in.TagSet = append(in.TagSet, types.Tag{Key: sdk.String(value.Str(key)), Value: sdk.String(value.Str(v))})
		want.Set(value.Str(key), value.Str(v))
	}
	return &bucketPart{field: "Tagging", want: want,
		get: func(ctx context.Context, c *s3.Client) (any, error) {
			out, err := c.GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: &b.Bucket})
			if err != nil {
				return nil, err
			}
			has := value.NewMap()
			for _, t := range out.TagSet {
				has.Set(sdk.ToString(t.Key), sdk.ToString(t.Value))
			}
			return has, nil
		},
		put: func(ctx context.Context, c *s3.Client) error {
			_, err := c.PutBucketTagging(ctx, &s3.PutBucketTaggingInput{Bucket: &b.Bucket, Tagging: in})
			return err
		},
		drop: func(ctx context.Context, c *s3.Client) error {
			_, err := c.DeleteBucketTagging(ctx, &s3.DeleteBucketTaggingInput{Bucket: &b.Bucket})
			return err
		}}, nil
}

func (b *bucketPresent) website() (*bucketPart, error) {
	if b.Website == nil {
		return nil, nil
	}
	in := &types.WebsiteConfiguration{}
	if err := intoSDK("Website", b.Website, in); err != nil {
		return nil, err
	}
	return &bucketPart{field: "Website", want: b.Website,
		get: func(ctx context.Context, c *s3.Client) (any, error) {
			out, err := c.GetBucketWebsite(ctx, &s3.GetBucketWebsiteInput{Bucket: &b.Bucket})
			if err != nil {
				return nil, err
			}
			return fromSDK(types.WebsiteConfiguration{ErrorDocument: out.ErrorDocument, IndexDocument: out.IndexDocument,
				RedirectAllRequestsTo: out.RedirectAllRequestsTo, RoutingRules: out.RoutingRules})
		},
		put: func(ctx context.Context, c *s3.Client) error {
			_, err := c.PutBucketWebsite(ctx, &s3.PutBucketWebsiteInput{Bucket: &b.Bucket, WebsiteConfiguration: in})
			return err
		},
		drop: func(ctx context.Context, c *s3.Client) error {
			_, err := c.DeleteBucketWebsite(ctx, &s3.DeleteBucketWebsiteInput{Bucket: &b.Bucket})
			return err
		}}, nil
}

// bucketAbsent is boto_s3_bucket.absent.
type bucketAbsent struct {
	common
	Name   string `sls:"name"`
	Bucket string `sls:"Bucket,required"`
	Force  bool   `sls:"Force"`
}

// Check implements module.Resource.
func (b *bucketAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := b.cloud.account(ctx, "s3", b.Account)
	if err != nil {
		return module.Diff{}, err
	}
	p := newPlan()
	there, _, err := bucketThere(ctx, a, b.Bucket)
	if !there || err != nil {
		return b.check(p, err)
	}
	client := s3Of(a)
	first, err := client.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &b.Bucket, MaxKeys: sdk.Int32(1)})
	if err != nil {
		return module.Diff{}, failed("listing bucket", b.Bucket, err)
	}
	full := len(first.Versions)+len(first.DeleteMarkers) > 0
	if full && !b.Force {
		return module.Diff{},
			diag.WithHint(fmt.Errorf("bucket %s holds objects", b.Bucket), "give Force: True to delete them with the bucket")
	}
	p.remove(value.NewMap("bucket", b.Bucket, "holds_objects", full))
	if full {
		p.then("objects deleted", func(ctx context.Context) error { return emptyBucket(ctx, client, b.Bucket) })
	}
	p.then("bucket deleted", func(ctx context.Context) error {
		_, err := client.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &b.Bucket})
		return failed("deleting bucket", b.Bucket, err)
	})
	return b.check(p, nil)
}

// emptyBucket deletes all objects with all their versions.
func emptyBucket(ctx context.Context, client *s3.Client, bucket string) error {
	for {
		page, err := client.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &bucket})
		if err != nil {
			return failed("listing bucket", bucket, err)
		}
		var all []types.ObjectIdentifier
		for _, v := range page.Versions {
			all = append(all, types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
		}
		for _, m := range page.DeleteMarkers {
			all = append(all, types.ObjectIdentifier{Key: m.Key, VersionId: m.VersionId})
		}
		if len(all) == 0 {
			return nil
		}
		out, err := client.DeleteObjects(ctx,
			&s3.DeleteObjectsInput{Bucket: &bucket, Delete: &types.Delete{Objects: all, Quiet: sdk.Bool(true)}})
		if err != nil {
			return failed("deleting the objects of bucket", bucket, err)
		}
		if len(out.Errors) > 0 {
			return fmt.Errorf("deleting the object %s of bucket %s: %s", sdk.ToString(out.Errors[0].Key), bucket,
				sdk.ToString(out.Errors[0].Message))
		}
	}
}
