package value_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/state/value"
)

func TestRandom(t *testing.T) {
	for _, c := range []struct {
		seed    any
		below   [4]int
		between int
		few     string
		many    string
	}{
		{"golden", [4]int{51, 0, 509626, 591693086991}, -4, "[5, 2, 8]",
			"[31, 18, 57, 53, 126, 153, 43, 224, 164, 37, 294, 25, 271, 132, 53, 54, 211, 174, 236, 195, 221, 93, 77, 173, " +
				"176, 284, 74, 127, 249, 157, 276, 129, 159, 103]"},
		{"", [4]int{29, 0, 406859, 488564789126}, 0, "[9, 0, 5]",
			"[46, 6, 58, 49, 157, 98, 86, 261, 136, 200, 13, 125, 161, 106, 124, 89, 166, 201, 291, 239, 7, 53, 187, 204, " +
				"185, 235, 80, 20, 121, 130, 162, 209, 26, 177]"},
		{"web-1.example.com", [4]int{43, 0, 145637, 821766693358}, -2, "[4, 6, 5]",
			"[66, 41, 57, 26, 115, 167, 133, 17, 202, 297, 80, 283, 259, 177, 154, 113, 238, 128, 269, 54, 189, 243, 212, " +
				"99, 254, 256, 214, 274, 184, 234, 22, 61, 148, 292]"},
		{0, [4]int{54, 0, 794772, 927241537154}, -5, "[4, 8, 7]",
			"[51, 38, 61, 45, 298, 111, 258, 71, 144, 48, 128, 272, 75, 158, 50, 37, 169, 241, 286, 51, 181, 222, 161, 104, " +
				"282, 244, 226, 266, 133, 31, 280, 7, 47, 204]"},
		{1, [4]int{8, 0, 267459, 1087133182857}, 2, "[7, 6, 3]",
			"[12, 62, 3, 49, 221, 1, 228, 136, 117, 52, 162, 15, 11, 13, 277, 4, 195, 110, 216, 14, 270, 113, 224, 253, " +
				"283, 119, 176, 118, 112, 235, 148, 213, 284, 51]"},
		{42, [4]int{40, 0, 26225, 604480356603}, -2, "[3, 2, 1]",
			"[86, 94, 69, 11, 216, 16, 15, 47, 111, 119, 258, 13, 287, 101, 279, 214, 112, 229, 142, 3, 81, 174, 79, 110, " +
				"172, 52, 194, 49, 183, 176, 135, 22, 235, 274]"},
		{-7, [4]int{20, 0, 414002, 105874957392}, -4, "[8, 1, 5]",
			"[74, 7, 64, 27, 19, 44, 222, 214, 35, 123, 46, 282, 217, 30, 289, 63, 114, 298, 31, 295, 299, 203, 25, 113, " +
				"23, 285, 68, 148, 73, 276, 60, 292, 157, 286]"},
		{1099511627779, [4]int{14, 0, 576159, 209739412056}, 4, "[4, 6, 3]",
			"[60, 71, 94, 42, 132, 159, 131, 242, 171, 276, 189, 48, 17, 284, 235, 62, 252, 34, 14, 184, 52, 135, 104, 278, " +
				"126, 156, 218, 85, 154, 255, 8, 127, 38, 274]"},
	} {
		r, err := value.NewRandom(c.seed)
		if err != nil {
			t.Fatal(err)
		}
		below := [4]int{r.Below(60), r.Below(1), r.Below(1_000_000), r.Below(1 << 40)}
		between, errB := r.Between(-5, 5)
		few, errF := r.Sample(numbers(10), 3)
		some, errS := r.Sample(numbers(100), 4)
		more, errM := r.Sample(numbers(300), 30)
		if errB != nil || errF != nil || errS != nil || errM != nil {
			t.Fatal(errB, errF, errS, errM)
		}
		if below != c.below || between != c.between || value.Repr(value.NewList(few...)) != c.few {
			t.Errorf("seed %v: drew %v, %d and %v, want %v, %d and %s", c.seed, below, between, few, c.below, c.between, c.few)
		}
		if got := value.Repr(value.NewList(append(some, more...)...)); got != c.many {
			t.Errorf("seed %v: drew %s, want %s", c.seed, got, c.many)
		}
	}
}

func numbers(n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func TestRandomRefuses(t *testing.T) {
	r, err := value.NewRandom(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Between(3, 2); err == nil {
		t.Error("an empty range gave a number")
	}
	if _, err := r.Sample(numbers(2), 3); err == nil {
		t.Error("three of two items were drawn")
	}
	if _, err := value.NewRandom(value.NewList()); err == nil {
		t.Error("a list was accepted as a seed")
	}
}
