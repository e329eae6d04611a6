"""The plot skeletons.

Each function tells one story into its Story argument. Parts that are introduced early stay in the
story's slots and return later, so that the ending fits the beginning. Every plot has four parts:
someone wants something, something is in the way, something or someone helps, and a feeling or a
lesson ends it.
"""

import plots_days as D
import plots_people as P
import plots_small as S

# (plot, weight): the plots that match the most common openings are more frequent.
PLOTS = [
    (S.lost_toy, 3), (S.stuck_high, 3), (S.broken_toy, 3), (S.share_toy, 3), (D.floating_away, 3),
    (P.lost_pet, 2), (P.pet_bath, 2), (P.pet_hero, 3), (P.pet_trick, 2),
    (S.lost_baby_animal, 2), (S.scared_night, 2), (S.learn_skill, 2), (S.bake, 2), (S.seed, 2), (S.rainy_day, 2), (S.new_friend, 2),
    (S.sick_friend, 2), (S.help_old, 2), (S.tell_truth, 2), (S.greedy, 2), (D.treasure, 2), (D.animal_rescue, 2), (D.race, 1),
    (D.tidy_room, 1), (D.lost_in_place, 2), (D.birthday, 2), (D.make_gift, 2), (D.magic_wish, 2), (D.snow_day, 2), (D.scary_neighbor, 2),
    (D.too_small, 1), (D.picnic, 2), (D.stage, 2), (P.sandcastle, 1), (P.earn_money, 2), (P.bedtime, 2), (P.doctor, 1),
    (P.hide_and_seek, 2), (P.no_coat, 2), (P.storm_shelter, 1), (P.heavy_thing, 2), (P.be_yourself, 1), (P.new_sibling, 1),
    (P.moon_trip, 1), (P.lost_tooth, 1),
]
