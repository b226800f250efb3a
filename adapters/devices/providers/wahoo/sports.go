package wahoo

// sports maps workout type ids to sport slugs.
var sports = map[int64]string{
	0: "cycling", 1: "running", 3: "track_running", 4: "trail_running", 5: "treadmill_running", 6: "walking", 7: "speed_walking", 8: "nordic_walking",
	9: "hiking", 10: "mountaineering", 11: "cyclocross", 12: "indoor_cycling", 13: "mountain_biking", 14: "recumbent_cycling", 15: "road_biking",
	16: "track_cycling", 17: "motorcycling", 20: "elliptical", 22: "indoor_rowing", 23: "stair_climbing", 25: "swimming", 26: "open_water_swimming",
	27: "snowboarding", 28: "skiing", 29: "downhill_skiing", 30: "cross_country_skiing", 31: "skating", 32: "ice_skating", 33: "inline_skating",
	34: "longboarding", 35: "sailing", 36: "windsurfing", 37: "canoeing", 38: "kayaking", 39: "rowing", 40: "kiteboarding",
	41: "stand_up_paddling", 43: "cardio", 44: "stair_climbing", 45: "wheelchair", 46: "golf", 49: "indoor_cycling", 56: "treadmill_walking",
	61: "indoor_cycling", 62: "multisport", 63: "transition", 64: "e_biking", 66: "yoga", 67: "running", 68: "indoor_cycling", 69: "mental_strength",
	70: "handcycling", 71: "indoor_running",
}
