package withings

// sports maps category ids to sport slugs. Unknown ids are other.
var sports = map[int]string{
	1: "walking", 2: "running", 3: "hiking", 4: "skating", 5: "bmx", 6: "cycling", 7: "swimming", 8: "surfing", 9: "kitesurfing",
	10: "windsurfing", 11: "bodyboarding", 12: "tennis", 13: "table_tennis", 14: "squash", 15: "badminton", 16: "strength_training",
	17: "fitness", 18: "elliptical", 19: "pilates", 20: "basketball", 21: "soccer", 22: "football", 23: "rugby", 24: "volleyball",
	25: "water_polo", 26: "horse_riding", 27: "golf", 28: "yoga", 29: "dancing", 30: "boxing", 31: "fencing", 32: "wrestling",
	33: "martial_arts", 34: "skiing", 35: "snowboarding", 187: "rowing", 188: "zumba", 191: "baseball", 192: "handball", 193: "hockey",
	194: "ice_hockey", 195: "climbing", 196: "ice_skating", 272: "multisport", 306: "indoor_walking", 307: "indoor_running",
	308: "indoor_cycling", 455: "stand_up_paddling", 456: "padel", 491: "stair_stepper", 494: "kayaking", 495: "canoeing", 496: "sailing",
	498: "trail_running", 499: "snowshoeing", 502: "scuba_diving", 521: "triathlon", 523: "mountain_biking", 524: "gravel_cycling",
	525: "e_biking", 529: "backcountry_skiing", 530: "nordic_skiing", 546: "crossfit", 547: "spinning", 550: "hiit", 551: "meditation",
	552: "stretching", 559: "dog_walking", 566: "nordic_walking",
}
