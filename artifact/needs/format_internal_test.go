package needs

import (
	"debug/elf"
	"testing"
)

// TestConstantsOfFormat compares the constants with those of debug/elf.
func TestConstantsOfFormat(t *testing.T) {
	t.Parallel()
	if magic != elf.ELFMAG {
		t.Errorf("the magic is %q", magic)
	}
	for i, pair := range [][2]uint64{
		{identSize, elf.EI_NIDENT}, {classIndex, elf.EI_CLASS}, {dataIndex, elf.EI_DATA}, {class32, uint64(elf.ELFCLASS32)},
		{class64, uint64(elf.ELFCLASS64)}, {littleEndian, uint64(elf.ELFDATA2LSB)}, {bigEndian, uint64(elf.ELFDATA2MSB)},
		{executable, uint64(elf.ET_EXEC)}, {shared, uint64(elf.ET_DYN)}, {i386, uint64(elf.EM_386)},
		{ppc64, uint64(elf.EM_PPC64)}, {s390x, uint64(elf.EM_S390)}, {arm, uint64(elf.EM_ARM)},
		{amd64, uint64(elf.EM_X86_64)}, {arm64, uint64(elf.EM_AARCH64)}, {riscv64, uint64(elf.EM_RISCV)},
		{loadPart, uint64(elf.PT_LOAD)}, {dynamicPart, uint64(elf.PT_DYNAMIC)}, {interpreterPart, uint64(elf.PT_INTERP)},
		{lastTag, uint64(elf.DT_NULL)}, {textsTag, uint64(elf.DT_STRTAB)}, {textsSizeTag, uint64(elf.DT_STRSZ)},
		{definedTag, uint64(elf.DT_VERDEF)}, {definedCountTag, uint64(elf.DT_VERDEFNUM)},
		{neededTag, uint64(elf.DT_VERNEED)}, {neededCountTag, uint64(elf.DT_VERNEEDNUM)},
	} {
		if pair[0] != pair[1] {
			t.Errorf("constant %d is %d, not %d", i, pair[0], pair[1])
		}
	}
}
