package aws_test

import (
	"fmt"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
)

// encryptionKeys imitates KMS: keys by their IDs, and aliases. The rotation of a disabled key cannot be read.
type encryptionKeys struct {
	all     map[string]*encryptionKey
	aliases map[string]string // IDs
}

type encryptionKey struct {
	types.KeyMetadata
	policy  string
	rotates bool
}

func newEncryptionKeys() *encryptionKeys {
	return &encryptionKeys{all: map[string]*encryptionKey{}, aliases: map[string]string{}}
}

// one finds a key by its ID or alias.
func (s *encryptionKeys) one(id *string) (*encryptionKey, error) {
	if k := s.all[s.aliases[*id]]; k != nil {
		return k, nil
	}
	if k := s.all[*id]; k != nil {
		return k, nil
	}
	return nil, fault("NotFoundException")
}

func (s *encryptionKeys) answer(in any) (any, error) {
	switch in := in.(type) {
	case *kms.CreateKeyInput:
		k := &encryptionKey{KeyMetadata: types.KeyMetadata{KeyId: sdk.String(fmt.Sprintf("key-%d", len(s.all))),
			Description: in.Description, Enabled: true}, policy: sdk.ToString(in.Policy)}
		s.all[*k.KeyId] = k
		return &kms.CreateKeyOutput{KeyMetadata: &k.KeyMetadata}, nil
	case *kms.ScheduleKeyDeletionInput:
		k, err := s.one(in.KeyId)
		if err == nil {
			k.KeyState = types.KeyStatePendingDeletion
		}
		return &kms.ScheduleKeyDeletionOutput{KeyId: in.KeyId}, err
	case *kms.CreateAliasInput:
		if s.aliases[*in.AliasName] != "" {
			return nil, fault("AlreadyExistsException")
		}
		s.aliases[*in.AliasName] = *in.TargetKeyId
		return &kms.CreateAliasOutput{}, nil
	case *kms.DescribeKeyInput:
		k, err := s.one(in.KeyId)
		if err != nil {
			return nil, err
		}
		shown := k.KeyMetadata
		return &kms.DescribeKeyOutput{KeyMetadata: &shown}, nil
	case *kms.UpdateKeyDescriptionInput:
		k, err := s.one(in.KeyId)
		if err == nil {
			k.Description = in.Description
		}
		return &kms.UpdateKeyDescriptionOutput{}, err
	case *kms.GetKeyPolicyInput:
		k, err := s.one(in.KeyId)
		if err != nil {
			return nil, err
		}
		return &kms.GetKeyPolicyOutput{Policy: &k.policy}, nil
	case *kms.PutKeyPolicyInput:
		k, err := s.one(in.KeyId)
		if err == nil {
			k.policy = *in.Policy
		}
		return &kms.PutKeyPolicyOutput{}, err
	}
	return s.answerSwitches(in)
}

func (s *encryptionKeys) answerSwitches(in any) (any, error) {
	switch in := in.(type) {
	case *kms.EnableKeyInput:
		k, err := s.one(in.KeyId)
		if err == nil {
			k.Enabled = true
		}
		return &kms.EnableKeyOutput{}, err
	case *kms.DisableKeyInput:
		k, err := s.one(in.KeyId)
		if err == nil {
			k.Enabled = false
		}
		return &kms.DisableKeyOutput{}, err
	case *kms.GetKeyRotationStatusInput:
		k, err := s.usable(in.KeyId)
		if err != nil {
			return nil, err
		}
		return &kms.GetKeyRotationStatusOutput{KeyRotationEnabled: k.rotates}, nil
	case *kms.EnableKeyRotationInput:
		k, err := s.usable(in.KeyId)
		if err == nil {
			k.rotates = true
		}
		return &kms.EnableKeyRotationOutput{}, err
	case *kms.DisableKeyRotationInput:
		k, err := s.usable(in.KeyId)
		if err == nil {
			k.rotates = false
		}
		return &kms.DisableKeyRotationOutput{}, err
	}
	return nil, nil
}

// usable finds a key that is enabled.
func (s *encryptionKeys) usable(id *string) (*encryptionKey, error) {
	k, err := s.one(id)
	if err == nil && !k.Enabled {
		return nil, fault("DisabledException")
	}
	return k, err
}
