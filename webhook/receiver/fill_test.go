package receiver_test

import (
	"encoding/json"
	"reflect"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// filler makes values of the published types with something in every field that is
// published.
type filler struct{ n int }

// special are values of types whose fields are not free.
var special = map[reflect.Type]func(n int) any{
	reflect.TypeFor[uuid.UUID](): func(n int) any { return uuid.NewSHA1(uuid.Nil, []byte(strconv.Itoa(n))) },
	reflect.TypeFor[healthlab.Time](): func(n int) any {
		return healthlab.At(time.Date(2026, 3, 1, 7, 0, n, 1000*n, time.UTC))
	},
	reflect.TypeFor[healthlab.Date]():   func(n int) any { return healthlab.Date{Year: 2026, Month: 3, Day: 1 + n%28} },
	reflect.TypeFor[healthdata.Value](): func(n int) any { return *healthdata.Number(float64(n) + 0.5) },
	reflect.TypeFor[decimal.Decimal]():  func(n int) any { return decimal.New(int64(n), -1) },
	reflect.TypeFor[json.RawMessage]():  func(n int) any { return json.RawMessage(`{"n":` + strconv.Itoa(n) + `}`) },
	reflect.TypeFor[json.Number]():      func(n int) any { return json.Number(strconv.Itoa(n) + ".50") },
	reflect.TypeFor[catalogue.QuestionType](): func(int) any {
		return catalogue.QuestionType("text")
	},
}

func (f *filler) of(t reflect.Type) any {
	v := reflect.New(t)
	f.fill(v.Elem(), 0)
	return v.Interface()
}

func (f *filler) fill(v reflect.Value, depth int) {
	f.n++
	if made, ok := special[v.Type()]; ok {
		v.Set(reflect.ValueOf(made(f.n)))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if field.IsExported() && field.Tag.Get("json") != "-" {
				f.fill(v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key, depth+1)
		f.fill(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("text" + strconv.Itoa(f.n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.n % 100))
	case reflect.Float64:
		v.SetFloat(float64(f.n) + 0.25)
	case reflect.Interface:
		panic("receiver_test: a published type has an interface")
	default:
		panic("receiver_test: what goes into a " + v.Kind().String())
	}
}
