package aws_test

import (
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// answerReads answers requests for configurations that each bucket has.
func (s *buckets) answerReads(in any) (any, error) {
	switch in := in.(type) {
	case *s3.GetBucketAclInput:
		b, err := s.one(in.Bucket)
		if err != nil {
			return nil, err
		}
		owner := types.Grant{Grantee: &types.Grantee{ID: sdk.String("me")}, Permission: types.PermissionFullControl}
		return &s3.GetBucketAclOutput{Owner: &types.Owner{ID: sdk.String("me")}, Grants: append([]types.Grant{owner},
			b.grants...)}, nil
	case *s3.GetBucketLoggingInput:
		b, err := s.one(in.Bucket)
		if err != nil {
			return nil, err
		}
		return &s3.GetBucketLoggingOutput{LoggingEnabled: b.logging}, nil
	case *s3.GetBucketNotificationConfigurationInput:
		b, err := s.one(in.Bucket)
		if err != nil {
			return nil, err
		}
		return &s3.GetBucketNotificationConfigurationOutput{QueueConfigurations: b.events.QueueConfigurations,
			TopicConfigurations:          b.events.TopicConfigurations,
			LambdaFunctionConfigurations: b.events.LambdaFunctionConfigurations}, nil
	case *s3.GetBucketVersioningInput:
		b, err := s.one(in.Bucket)
		if err != nil {
			return nil, err
		}
		return &s3.GetBucketVersioningOutput{Status: b.version}, nil
	case *s3.GetBucketRequestPaymentInput:
		b, err := s.one(in.Bucket)
		if err != nil {
			return nil, err
		}
		return &s3.GetBucketRequestPaymentOutput{Payer: b.payer}, nil
	}
	return nil, nil
}

// answerOptionalReads answers requests for configurations that a bucket may lack.
func (s *buckets) answerOptionalReads(in any) (any, error) {
	read := func(name *string, code string, has func(b *bucket) bool) (*bucket, error) {
		b, err := s.one(name)
		if err == nil && !has(b) {
			err = fault(code)
		}
		if err != nil {
			return &bucket{}, err
		}
		return b, nil
	}
	switch in := in.(type) {
	case *s3.GetBucketCorsInput:
		b, err := read(in.Bucket, "NoSuchCORSConfiguration", func(b *bucket) bool { return b.cors != nil })
		return &s3.GetBucketCorsOutput{CORSRules: b.cors}, err
	case *s3.GetBucketLifecycleConfigurationInput:
		b, err := read(in.Bucket, "NoSuchLifecycleConfiguration", func(b *bucket) bool { return b.rules != nil })
		return &s3.GetBucketLifecycleConfigurationOutput{Rules: b.rules}, err
	case *s3.GetBucketPolicyInput:
		b, err := read(in.Bucket, "NoSuchBucketPolicy", func(b *bucket) bool { return b.policy != "" })
		return &s3.GetBucketPolicyOutput{Policy: &b.policy}, err
	case *s3.GetBucketTaggingInput:
		b, err := read(in.Bucket, "NoSuchTagSet", func(b *bucket) bool { return b.tags != nil })
		return &s3.GetBucketTaggingOutput{TagSet: b.tags}, err
	case *s3.GetBucketReplicationInput:
		b, err := read(in.Bucket, "ReplicationConfigurationNotFoundError", func(b *bucket) bool { return b.replicas != nil })
		if err != nil {
			return nil, err
		}
		shown := *b.replicas
		return &s3.GetBucketReplicationOutput{ReplicationConfiguration: &shown}, nil
	case *s3.GetBucketWebsiteInput:
		b, err := read(in.Bucket, "NoSuchWebsiteConfiguration", func(b *bucket) bool { return b.site != nil })
		if err != nil {
			return nil, err
		}
		return &s3.GetBucketWebsiteOutput{ErrorDocument: b.site.ErrorDocument, IndexDocument: b.site.IndexDocument,
			RedirectAllRequestsTo: b.site.RedirectAllRequestsTo, RoutingRules: b.site.RoutingRules}, nil
	}
	return nil, nil
}

// answerAccess answers requests that set ACLs and policies.
func (s *buckets) answerAccess(in any) (any, error) {
	switch in := in.(type) {
	case *s3.PutBucketAclInput:
		b, err := s.one(in.Bucket)
		if err != nil {
			return nil, err
		}
		grants, open := grantsOf(in)
		switch {
		case !b.acls:
			return nil, fault("AccessControlListNotSupported")
		case open:
			return nil, fault("AccessDenied")
		}
		b.grants = grants
		return &s3.PutBucketAclOutput{}, nil
	case *s3.PutBucketPolicyInput:
		b, err := s.one(in.Bucket)
		if err != nil {
			return nil, err
		}
		if strings.Contains(*in.Policy, `"Principal": "*"`) && strings.Contains(*in.Policy, `"Allow"`) {
			return nil, fault("AccessDenied")
		}
		b.policy = *in.Policy
		return &s3.PutBucketPolicyOutput{}, nil
	}
	return nil, nil
}

// grantsOf returns the grants of a request, and whether they open the bucket to all.
func grantsOf(in *s3.PutBucketAclInput) (all []types.Grant, open bool) {
	const groups = "http://acs.amazonaws.com/groups/"
	to := func(uri string, permission types.Permission) {
		all = append(all, types.Grant{Grantee: &types.Grantee{URI: &uri}, Permission: permission})
	}
	switch in.ACL {
	case types.BucketCannedACLPublicRead:
		open = true
	case "log-delivery-write":
		to(groups+"s3/LogDelivery", types.PermissionWrite)
		to(groups+"s3/LogDelivery", types.PermissionReadAcp)
	}
	for permission, given := range map[types.Permission]*string{types.PermissionRead: in.GrantRead,
		types.PermissionWrite: in.GrantWrite} {
		for one := range strings.SplitSeq(sdk.ToString(given), ",") {
			if kind, who, ok := strings.Cut(strings.TrimSpace(one), "="); ok && kind == "id" {
				all = append(all, types.Grant{Grantee: &types.Grantee{ID: sdk.String(strings.Trim(who, `"`))},
					Permission: permission})
			}
		}
	}
	return all, open
}

// answerPuts answers requests that set other configurations. AWS gives IDs to rules without one, and returns the names
// of the rules of filters with a capital letter.
func (s *buckets) answerPuts(in any) (any, error) {
	switch in := in.(type) {
	case *s3.PutBucketCorsInput:
		b, err := s.one(in.Bucket)
		if err == nil {
			b.cors = in.CORSConfiguration.CORSRules
		}
		return &s3.PutBucketCorsOutput{}, err
	case *s3.PutBucketLifecycleConfigurationInput:
		b, err := s.one(in.Bucket)
		if err == nil {
			b.rules = copied(in.LifecycleConfiguration.Rules)
			for i := range b.rules {
				named(&b.rules[i].ID, i)
			}
		}
		return &s3.PutBucketLifecycleConfigurationOutput{}, err
	case *s3.PutBucketLoggingInput:
		b, err := s.one(in.Bucket)
		if err == nil {
			b.logging = in.BucketLoggingStatus.LoggingEnabled
		}
		return &s3.PutBucketLoggingOutput{}, err
	case *s3.PutBucketNotificationConfigurationInput:
		b, err := s.one(in.Bucket)
		if err == nil {
			b.events = copied(*in.NotificationConfiguration)
			for i, q := range b.events.QueueConfigurations {
				named(&b.events.QueueConfigurations[i].Id, i)
				if q.Filter != nil && q.Filter.Key != nil {
					for n, rule := range q.Filter.Key.FilterRules {
						q.Filter.Key.FilterRules[n].Name = types.FilterRuleName(strings.ToUpper(string(rule.Name[:1])) +
							string(rule.Name[1:]))
					}
				}
			}
		}
		return &s3.PutBucketNotificationConfigurationOutput{}, err
	case *s3.PutBucketVersioningInput:
		b, err := s.one(in.Bucket)
		if err == nil {
			b.version = in.VersioningConfiguration.Status
		}
		return &s3.PutBucketVersioningOutput{}, err
	case *s3.PutBucketTaggingInput:
		b, err := s.one(in.Bucket)
		if err == nil {
			b.tags = in.Tagging.TagSet
		}
		return &s3.PutBucketTaggingOutput{}, err
	case *s3.PutBucketWebsiteInput:
		b, err := s.one(in.Bucket)
		if err == nil {
			b.site = in.WebsiteConfiguration
		}
		return &s3.PutBucketWebsiteOutput{}, err
	}
	return nil, nil
}

// answerReplication answers requests that set the replication and the payer of a bucket.
func (s *buckets) answerReplication(in any) (any, error) {
	switch in := in.(type) {
	case *s3.PutBucketReplicationInput:
		b, err := s.one(in.Bucket)
		if err == nil && b.version != types.BucketVersioningStatusEnabled {
			return nil, fault("InvalidRequest")
		}
		if err == nil {
			config := copied(*in.ReplicationConfiguration)
			for i := range config.Rules {
				named(&config.Rules[i].ID, i)
			}
			b.replicas = &config
		}
		return &s3.PutBucketReplicationOutput{}, err
	case *s3.PutBucketRequestPaymentInput:
		b, err := s.one(in.Bucket)
		if err == nil {
			b.payer = in.RequestPaymentConfiguration.Payer
		}
		return &s3.PutBucketRequestPaymentOutput{}, err
	}
	return nil, nil
}

func (s *buckets) answerDeletes(in any) (any, error) {
	drop := func(name *string, do func(b *bucket)) error {
		b, err := s.one(name)
		if err == nil {
			do(b)
		}
		return err
	}
	switch in := in.(type) {
	case *s3.DeleteBucketCorsInput:
		return &s3.DeleteBucketCorsOutput{}, drop(in.Bucket, func(b *bucket) { b.cors = nil })
	case *s3.DeleteBucketLifecycleInput:
		return &s3.DeleteBucketLifecycleOutput{}, drop(in.Bucket, func(b *bucket) { b.rules = nil })
	case *s3.DeleteBucketPolicyInput:
		return &s3.DeleteBucketPolicyOutput{}, drop(in.Bucket, func(b *bucket) { b.policy = "" })
	case *s3.DeleteBucketTaggingInput:
		return &s3.DeleteBucketTaggingOutput{}, drop(in.Bucket, func(b *bucket) { b.tags = nil })
	case *s3.DeleteBucketReplicationInput:
		return &s3.DeleteBucketReplicationOutput{}, drop(in.Bucket, func(b *bucket) { b.replicas = nil })
	case *s3.DeleteBucketWebsiteInput:
		return &s3.DeleteBucketWebsiteOutput{}, drop(in.Bucket, func(b *bucket) { b.site = nil })
	}
	return nil, nil
}

// copied returns a deep copy of a value of the SDK.
func copied[T any](v T) (c T) {
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		panic(err)
	}
	return c
}

// named gives a rule without an ID one.
func named(id **string, n int) {
	if sdk.ToString(*id) == "" {
		*id = sdk.String(fmt.Sprintf("made-%d", n))
	}
}
