"""Plots about friends, family and animals. See plots.py."""

import words as W


def sandcastle(s):
    s.kid()
    s.meet()
    if s.chance(0.5):
        s.sibling()
        s.v["w"], s.v["intro"], s.v["whis"] = s.v["b"], s.v["sib"], s.v["bhis"]
    else:
        s.friend()
        s.v["w"], s.v["intro"], s.v["whis"] = s.v["f"], s.v["mf"], s.v["fhis"]
    s.toy(["bucket", "shovel"])
    s.one_day()
    s.add("{oneday}, {h} went to the beach with {intro}. {He} took {his} {adj} {toy}.", "{oneday}, {h} and {intro} were at the beach. {h} had a {adj} {toy}.")
    s.add("They built a big sandcastle with [four towers|a tall tower|a long wall].", "They worked all morning and made a tall sandcastle.")
    s.add("{w} put a [shell|feather|little flag] on the top.", '"It is the best castle in the world," said {w}.')
    if s.chance(0.6):
        s.add("Then a big wave came. Whoosh! The castle was gone.", "But the water came closer and closer. A wave washed the castle away.")
        s.add('"Our castle!" {h} cried.', "{h} was so sad that {he} sat down and cried.")
        s.add('"We can build a new one," said {w}. "This time, not so close to the water."', '"Do not cry," said {w}. "The sea did not know. We can make an even bigger one."')
        s.add("So they moved back and began again. {h} used the {toy}, and {w} used {whis} hands.", "They went far from the water and started over. {h} filled the {toy} with sand again and again.")
        s.add("The new castle was even [bigger|better|taller] than the first.")
        s.add("A wave came, but it could not reach the castle. They cheered!", "They dug a deep ditch around it to keep the water away.")
        s.close("again", s.v["w"], 0.6)
    else:
        s.add("Then a big boy ran by and kicked the castle. It fell down.")
        s.add('"Why did you do that?" asked {h}. The boy looked down. "Nobody asked me to play," he said.')
        s.add("{h} was angry. But then {he} gave the boy the {adj} {toy}. \"You can help us build a new one,\" {he} said.")
        s.add('"I am sorry," said the boy. He dug and dug. He was very strong.')
        s.add("Together the three of them made a castle that was twice as big.")
        s.close(s.pick(["kind", "friend", "team"]), s.v["w"], 0.7)


def earn_money(s):
    s.kid()
    s.meet()
    s.toy(["kite", "ball", "drum", "truck", "doll", "robot", "toy boat", "book", "hat", "teddy bear", "toy train", "scooter"])
    s.one_day()
    s.family(["mom", "dad"])
    s.add("{oneday}, {h} saw a {adj} {toy} in the store window. {He} wanted it very much.", "{oneday}, {h} went to the store and saw a {adj} {toy}.")
    s.add('"Can I have it, {G}?" {he} asked {g}. "You can save your coins for it," said {G}.', "But {he} had no money.", 'The {toy} cost ten coins. "I have only two," {h} said sadly.')
    s.neighbor()
    s.v["j1"], s.v["j2"] = s.pick2(["washed the car", "picked up the leaves", "watered the flowers", "fed the chickens", "swept the floor", "walked the dog", "cleaned the windows", "carried the wood"])
    s.add('So {h} went to {n}. "Can I work for you?" {he} asked. "Yes," said {n}.', "{h} asked {n} for some work, and {n} said yes.")
    s.add("{He} {j1}, and {he} {j2}. It was hard work.", "On the first day, {he} {j1}. On the next day, {he} {j2}.")
    s.add("{n} gave {him} shiny coins, and {h} put them in a jar.", "After a week, {h} had enough coins.")
    if s.chance(0.55):
        s.add("{h} ran to the store and bought the {adj} {toy}.", "At last {he} could buy the {toy}. {He} carried it home with care.")
        s.add("It was more fun than any other toy, because {he} had earned it.", '"I am proud of you," said {G}. "You worked hard for that {toy}."')
        s.close("patient", None, 0.5)
    else:
        s.v["who"] = s.pick(["a little girl", "a little boy"])
        s.v["whos"] = s.v["who"].replace("a little", "the")
        s.v["tear"] = "her" if "girl" in s.v["who"] else "his"
        s.add("On the way to the store, {he} saw {who} in the street. {whos} had lost {tear} money for bread and was crying.".replace("{whos} had", s.v["whos"].capitalize() + " had"))
        s.add("{h} looked at the jar. Then {he} gave the coins to {whos}.")
        s.add('"You did a kind thing," said {n}, who had seen it all. The next day, {n} gave {h} a big box. The {adj} {toy} was in it!')
        s.close(s.pick(["kind", "give"]), None, 0.7)


def bedtime(s):
    s.anyone(0.45)
    s.meet()
    s.family(["mom", "dad", "grandma", "grandpa"])
    s.add("One night, {h} could not sleep.", "It was late, but {h} was not tired.", "The moon was up, but {h} was still awake.")
    s.add('"{G}, I cannot sleep," {he} said.', "{He} turned to the left, and {he} turned to the right.", "{He} called {g}. \"I am not sleepy,\" said {h}.")
    a, b = s.pick2([("drank a cup of warm milk", "warm milk"), ("counted sheep", "sheep"), ("looked at the stars", "stars"), ("sang a quiet song", "song"), ("counted to one hundred", "numbers")])
    s.v["t1"], s.v["t2"] = a[0], b[0]
    s.add("First {he} {t1}, but it did not help.", "{He} {t1}. {He} was still awake.")
    s.add("Then {he} {t2}, but {his} eyes stayed open.", "Then {he} {t2}. It did not help.")
    s.toy(W.SOFT_TOYS)
    if s.chance(0.5):
        s.add('"Something is missing," said {G}. "Where is your {toy}?"', '{G} looked at the bed. "Where is your {adj} {toy}?" {Ghe} asked.')
        s.v["spot"] = s.pick(["under the bed", "in the kitchen", "behind the door", "on the chair", "under the table"])
        s.add("They looked for it together. The {adj} {toy} was {spot}.", "{h} ran to look. There it was, {spot}!")
        s.add("{h} held the {toy} tight and lay down.", '"Now we can sleep," {h} said to the {toy}.')
    else:
        s.v["about"] = s.pick(["a bear who slept all winter", "a sleepy train", "a little boat on a quiet sea", "a star that was tired", "a sheep who could not sleep"])
        s.add("{G} sat down on the bed and told a story about {about}.", '"I will tell you a story," said {G}. It was about {about}.')
        s.add("{h} held {his} {adj} {toy} and listened.", "The story was soft and slow. {h} closed {his} eyes.")
    s.add("Soon {h} was fast asleep.", "In a moment, {he} was asleep.", "{His} eyes closed, and {he} began to dream.")
    s.add('"Good night, {h}," {G} whispered.', "{G} kissed {him} and turned off the light.", "{He} dreamed of [the moon|a green garden|the big sea|flying] all night long.")
    s.maybe(0.3, "In the morning, {h} felt [fresh and happy|wide awake].")


def doctor(s):
    s.anyone(0.25)
    s.meet()
    s.family(["mom", "dad", "grandma"])
    where, s.v["hurt"] = s.pick([("doctor", "ear hurt"), ("doctor", "tummy hurt"), ("doctor", "arm hurt"), ("dentist", "tooth hurt"), ("doctor", "throat hurt")])
    s.v["doc"] = where
    s.set_person("d", "doctor", s.pick(["he", "she"]))
    s.one_day()
    s.add("{oneday}, {h}'s {hurt}.", "{oneday}, {h} woke up and {his} {hurt}.")
    s.add('"We must go to the {doc}," said {g}.', '{g} said, "The {doc} can help you."')
    s.add('"No! I am afraid," said {h}. {He} hid under the table.', "{h} did not want to go. {He} was afraid.")
    s.toy(W.SOFT_TOYS)
    s.add('"You can take your {toy}," said {G}. So {h} took {his} {adj} {toy} and went.', '"I will hold your hand all the time," said {G}.' if not s.animal else '"I will stay with you all the time," said {G}.')
    s.add("The {doc} was very nice. {dHe} had a warm smile.", '"Hello, {h}," said the {doc}. "You do not have to be afraid."')
    if any("take your" in x for x in s.out):
        s.add('First the {doc} looked at the {toy}. "Your {toy} is fine," {dhe} said. {h} giggled.')
    else:
        s.add("{h} held on to {G} very tight.")
    s.add('Then the {doc} looked at {h}. "All done!" {dhe} said. It did not hurt at all.', "{h} sat very still. It was over in one minute.")
    s.add("The {doc} gave {him} [a sticker with a star|a red sticker|a balloon|a small toy].", '"You were very brave," said the {doc}.')
    s.add("The next day, {h} felt well again.", "Soon {h} felt much better.")
    s.close("brave", None, 0.75)


def hide_and_seek(s):
    s.anyone(0.4)
    s.meet()
    s.friend()
    s.one_day()
    s.place(W.LAND_PLACES)
    s.add("{oneday}, {h} played hide and seek with {mf} {at}.", '"Let us play hide and seek," said {mf} one day.')
    s.add('{f} closed {fhis} eyes and counted. "One, two, three!"', "{f} began to count to ten.")
    s.v["spot"] = s.pick(["behind a big rock", "in the tall grass", "in a hollow log", "behind the old oak tree", "under a pile of leaves", "under a bush", "behind the shed"])
    s.add("{h} ran to hide. {He} found a good place {spot}.", "{h} hid {spot} and was very quiet.")
    s.v["w1"], s.v["w2"] = s.pick2(["by the gate", "near the fence", "under the bench", "next to the well", "near the bridge"])
    s.add("{f} looked {w1}. No {h}. {fHe} looked {w2}. No {h}.", "{f} looked {w1} and {w2}, but {fhe} could not find {h}.")
    if s.chance(0.5):
        s.add("It was warm and soft there, and {h} fell asleep.", "{h} waited and waited. {He} got so tired that {he} fell asleep.")
        s.add('"{h}! Where are you?" called {f}. {fHe} was worried now.', "The sun went down, and {f} was worried.")
        s.add("Then {f} heard a funny sound. It was {h}, and {he} was snoring!", "Then {fhe} heard a soft snore {spot}.")
        s.add('"I found you!" {f} laughed. {h} opened {his} eyes. "Did I win?" {he} asked.')
    else:
        s.v["tickle"] = s.pick(["a feather", "a blade of grass", "a little ant", "some dust", "a butterfly"])
        s.add("Then {tickle} tickled {h}'s nose. \"Achoo!\" went {h}.")
        s.add('"I heard that!" {f} called, and ran to the place. "I found you!"')
        s.add("They both laughed so much that they fell over.", '"My nose gave me away," said {h}.')
    s.add('"You are the best at hiding," said {f}.', '"Now it is your turn to hide," said {h}.', "Then they walked home together.")
    s.close(None, s.v["f"])


def no_coat(s):
    s.anyone(0.25)
    s.meet()
    s.family(["mom", "dad", "grandma", "grandpa"])
    what, s.v["weather"], s.v["bad"], s.v["result"] = s.pick([
        ("coat", "cold", "A cold wind began to blow", "{He} was so cold that {his} teeth shook"),
        ("boots", "wet", "There was water everywhere", "{His} feet were cold and wet"),
        ("hat", "very hot", "The sun was hot and bright", "{His} head was hot and red"),
        ("umbrella", "gray", "Big drops began to fall", "{He} was wet from head to toe"),
        ("scarf", "cold", "Snow began to fall", "{His} neck was cold and {he} began to cough"),
        ("mittens", "cold", "Snow began to fall", "{His} hands were so cold that they hurt")])
    s.v["what"] = what
    s.v["it"] = "them" if what in ("boots", "mittens") else "it"
    s.v["result"] = s.render(s.v["result"])
    s.place(W.OUTDOORS)
    s.v["col"] = s.pick(["red", "blue", "green", "yellow"])
    s.add("One {weather} day, {h} wanted to go {to}." if what not in ("umbrella",) else "One gray day, {h} wanted to go {to}.")
    s.add('"Take your {col} {what}," said {g}.', '"Do not forget your {col} {what}," {g} said.')
    s.add('"No, I do not need {it}," said {h}, and ran out.', '"I do not like my {what}," said {h}. {He} went out without {it}.')
    s.add("At first, it was fun {at}. Then the weather changed. {bad}.", "But soon it was not fun anymore. {bad}.")
    s.add("{result}.", '"Oh no," said {h}. {result}.')
    s.maybe(0.5, '"I wish I had my {what}," {he} said.', "{He} thought of the {what} at home.")
    if s.chance(0.5):
        s.add("Then {he} saw {G}. {GHe} came down the road with the {col} {what}.", "{h} looked up. There was {G} with the {col} {what}!")
        s.add('"I thought you might need {it}," said {G}. {h} put {it} on right away.' if what != "umbrella" else '"I thought you might need it," said {G}. They stood under it together.')
    else:
        s.add("{He} ran all the way home. {G} gave {him} [warm soup|a cup of tea|a glass of water] and a soft blanket." if what != "hat" else "{He} ran all the way home. {G} gave {him} a glass of cold water.")
        s.add('"Next time I will take my {what}," said {h}.', "The next day, {h} took the {col} {what} and had a lot of fun.")
    s.add('"You were right, {G}," {he} said.', "{h} hugged {G}.")
    s.close(s.pick(["listen", "careful"]), None, 0.7)


def lost_pet(s):
    s.kid()
    s.pet()
    s.with_pet()
    s.one_day()
    s.add("{oneday}, {pn} was not in {pnhis} bed. {h} looked everywhere.", "But {oneday}, {pn} ran away." if s.v["p"] != "parrot" else "But {oneday}, {pn} flew out of the window.")
    s.add('"{pn}! Where are you?" {h} called.', "{h} was very sad. {He} missed {pn} so much.")
    s.v["s1"], s.v["s2"], s.v["s3"] = s.rng.sample(W.OUTDOOR_SPOTS, 3)
    s.add("{He} looked {s1}, but {pn} was not there.", "{He} looked {s1} and {s2}. No {pn}.")
    if s.chance(0.5):
        s.family()
        s.add("{G} helped {him} to look. They asked all the people in the street.", "{He} and {g} made a sign with a picture of {pn}.")
    else:
        s.neighbor()
        s.add('{He} asked {n}. "I think I heard a {p} {s3}," said {n}.', '"Have you seen my {p}?" {h} asked {n}. "I heard something {s3}," said {n}.')
    s.add("Then {h} heard a small sound {s3}. It was {pn}!", "{h} ran to look. {pn} was {s3}!" if "n" in s.v else "At last {h} looked {s3}. There was {pn}!")
    br = s.pick(["stuck", "baby", "asleep"])
    if br == "stuck":
        s.v["stuck"] = s.pick(["{pnHis} foot was stuck under a root", "{pnHis} collar was caught on a branch", "{pnHe} was in a hole and could not get out"])
        s.v["stuck"] = s.render(s.v["stuck"])
        s.add("{stuck}. {h} helped {pnhim} with care.")
    elif br == "baby":
        s.v["nb"] = s.pick(["a tiny bird", "a baby mouse", "a little duckling"])
        s.add("And {pnhe} was not alone. {pnHe} was keeping {nb} warm.")
    else:
        s.add("{pnHe} was fast asleep in the sun.", "{pnHe} was sleeping there with a [dirty|funny] nose.")
    s.add('"{pn}! I was so worried!" said {h}, and hugged {pnhim}.', "{h} held {pn} tight and did not want to let go.")
    s.add("At home, {pn} got a big dinner.", "That night, {pn} slept at the end of {h}'s bed.")
    s.close(None, s.v["pn"])


def pet_bath(s):
    s.kid()
    s.pet(["dog", "dog", "puppy", "cat", "kitten", "pony"])
    s.with_pet()
    s.one_day()
    s.place(W.OUTDOORS)
    s.add("{oneday}, they went {to}. {pn} found a big puddle of mud and jumped right in.", "{oneday}, {pn} rolled in the mud {at}.")
    s.add("Now {pn} was brown from nose to tail.", "{pn} was so dirty that {h} could only see {pnhis} eyes.")
    s.add('"You need a bath, {pn}!" said {h}. But {pn} did not like water.', '"Oh, {pn}! You are so dirty," said {h}. "It is time for a bath." {pn} ran away.')
    s.v["s1"] = s.pick(["under the table", "behind the couch", "under the bed", "behind the door"]) if s.v["p"] != "pony" else "behind the barn"
    s.add("{pnHe} hid {s1}.", "{h} ran after {pnhim}, around and around.")
    s.add("{h} tried to pull {pnhim}, but {pn} did not move.", '"Come out, {pn}," said {h}. {pn} shook {pnhis} head.')
    s.v["lure"] = s.pick(["{pn}'s favorite ball", "a tasty snack", "a piece of cheese", "a carrot"]) if s.v["p"] != "pony" else s.pick(["a carrot", "a sweet apple"])
    s.v["lure"] = s.render(s.v["lure"])
    s.add("Then {h} had an idea. {He} put {lure} next to the tub.", "{h} thought for a moment. Then {he} got {lure} and put it in the tub.")
    s.add("{pn} came out, step by step. Splash! {pnHe} was in the water.", "{pn} could not wait. {pnHe} jumped right in. Splash!")
    s.add("{h} washed {pnhim} with soap. There were bubbles everywhere.", "The water was warm, and {pn} began to like it.")
    s.add("Then {pn} shook {pnhis} fur, and {h} was all wet too!", "Soon {pn} was clean, but now {h} was wet from head to toe.")
    s.add('"Now we both had a bath!" {h} laughed.', "They both sat in the sun to dry.")
    s.close(None, s.v["pn"])


def pet_hero(s):
    s.kid()
    s.pet(["dog", "dog", "dog", "puppy", "cat", "pony"])
    s.with_pet()
    s.place(W.LAND_PLACES)
    s.one_day()
    s.add("{oneday}, {h} and {pn} went {to}.", "{oneday}, they took a long walk {at}.")
    br = s.pick(["lost", "hole", "storm", "found"])
    s.family(["mom", "dad"])
    if br == "lost":
        s.add("They walked very far. Soon {h} did not know the way home.", "They ran after a butterfly, and then {h} was lost.")
        s.add('"I do not know where we are," {h} cried.', "It got dark, and {h} was afraid.")
        s.add("But {pn} put {pnhis} nose to the ground and sniffed. {pnHe} knew the way.", "{pn} [licked {h}'s hand|looked at {h}] and began to walk. {h} followed {pnhim}.")
        s.add("They walked past the big tree and over the bridge. Then {h} saw the lights of {his} house.", "Step by step, {pn} led {him} home.")
    elif br == "hole":
        s.add("{h} did not see a deep hole in the ground. {He} fell in and could not get out.")
        s.add('"Help!" {he} called, but nobody was there.', '"Run home and get {G}, {pn}!" {h} called.')
        s.add("{pn} ran home as fast as {pnhe} could. {pnHe} pulled at {G}'s coat until {Ghe} came.", "{pn} ran to find {G}. {pnHe} would not stop until {Ghe} followed {pnhim}.")
        s.add("{G} came with a rope and pulled {h} out.")
    elif br == "storm":
        s.add("Suddenly the sky got dark. There was thunder, and it began to rain hard.")
        s.add("{h} was scared and did not know where to go.")
        s.add("{pn} ran ahead and looked back at {him}. {h} followed {pnhim} to a little [hut|cave|barn].", "{pn} pulled {him} to an old barn. It was dry inside.")
        s.add("They sat close together. {pn} was warm, and {h} was not afraid anymore.")
        s.add("When the rain stopped, they walked home.")
    else:
        s.add("{pn} began to dig under a tree. {pnHe} dug and dug.", "Then {pn} stopped and would not move. {pnHe} looked at the ground and began to dig.")
        s.v["find"] = s.pick(["a gold ring", "an old watch", "a silver necklace", "a small box with a key"])
        s.add("There, in the dirt, was {find}!", "{h} looked into the hole and saw {find}.")
        s.neighbor()
        s.add('"This is mine!" said {n}. "I lost it a long time ago. Thank you!"', "It was the one that {n} had lost last year. {n} was so happy that {nhe} cried.")
        s.add("{n} gave {h} a cake and gave {pn} a big treat.")
    s.add('"{pn}, you are a hero!" said {h}.', '"Good {p}!" said {h}. "You are the best {p} in the world."')
    s.add("{G} gave {pn} a big dinner that night." if br != "found" else "{h} was very proud of {pn}.", "{h} hugged {pn} for a long time.")
    s.close(None, s.v["pn"])


def pet_trick(s):
    s.kid()
    s.pet(["dog", "dog", "puppy", "cat", "parrot", "pony", "rabbit"])
    s.v["trick"], s.v["did"] = s.pick([("sit", "sat"), ("roll over", "rolled over"), ("shake hands", "gave {h} a paw"), ("jump through a hoop", "jumped through the hoop"), ("dance", "danced in a circle"), ("catch a ball", "caught the ball")]) if s.v["p"] not in ("parrot", "pony", "rabbit") else s.pick([("dance", "danced in a circle"), ("come to the door", "came to the door")] if s.v["p"] != "parrot" else [("say hello", 'said "Hello"'), ("sing", "sang a song")])
    s.v["trick"], s.v["did"] = s.render(s.v["trick"]), s.render(s.v["did"])
    s.with_pet()
    s.one_day()
    s.add("{oneday}, {h} wanted to teach {pn} to {trick}.", '{oneday}, {h} said, "I will teach you to {trick}, {pn}."')
    s.add("{h} showed {pnhim} how to do it, but {pn} only looked at {him}.", "But {pn} just [ran around|fell asleep|looked at {him}].")
    s.add("{h} tried again and again. {pn} did not understand.", '"Come on, {pn}!" said {h}. But nothing happened.')
    s.add('{h} got angry. "You are a silly {p}!" {he} said. {pn} looked sad and hid.' if s.chance(0.5) else '"Maybe {pn} cannot learn it," {h} said sadly.')
    s.family()
    s.add('"Be gentle," said {g}. "Use kind words and small treats."', '{g} smiled. "When you were small, you needed time too," said {G}.')
    s.add("So {h} was kind and patient. {He} gave {pn} a [treat|small snack] for every little step.", "So they practiced a little every day, with kind words and many treats.")
    s.add("After a few days, {pn} {did}!", "Then one morning, {pn} {did}!", "And at last, {pn} {did}!")
    s.add('"You did it, {pn}!" cried {h}. {He} danced with joy.', '"Good {p}!" {h} shouted, and hugged {pnhim}.')
    s.maybe(0.5, "{G} clapped and laughed.", "They showed the trick to the whole family.")
    s.close("patient", s.v["pn"], 0.5)


def storm_shelter(s):
    s.beast(["rabbit", "bunny", "mouse", "fox", "bear", "squirrel", "hedgehog", "badger", "owl", "mole"])
    s.friend()
    s.v["home"] = W.ANIMAL_HOMES[s.v["kind"]]
    s.meet()
    s.add("{He} had a [small|warm|cozy] {home} with [a soft bed|one little bed].", "{His} {home} was small, but it was warm.")
    s.add("One night, there was a big storm. The wind howled, and the rain came down.", "One evening, it began to rain very hard, and the wind was strong.")
    s.v["f2"] = s.pick([k for k in ("frog", "bird", "hedgehog", "duck", "mouse", "squirrel") if k not in (s.v["kind"], s.v["fkind"])])
    s.add('Knock, knock! It was {mf}. "My home is full of water," said {f}. "May I come in?"')
    s.add('"It is very small here," said {h}. "But come in!"', '"Of course," said {h}. "There is room for two."')
    s.add('Then there was another knock. It was a wet little {f2}. "I am so cold," said the {f2}.', 'Soon a cold and wet {f2} came too. "Is there room for me?" asked the {f2}.')
    s.add('{h} looked around. "We will have to sit very close," {he} said, and let the {f2} in.', '"Yes," said {h}. "We can all fit."')
    s.v["treat"] = s.pick(["nuts", "berries", "warm soup", "apples", "bread"])
    s.add("They ate {treat} and told stories. It was full, but it was very warm.", "{h} gave them {treat}, and they all sat close together.")
    s.add("In the morning, the storm was over, and the sun was out.", "When the sun came up, the rain had stopped.")
    s.add("{f} and the {f2} helped {h} to clean the {home}.", "But the wind had broken the door. {f} and the {f2} fixed it for {h}.", '"Thank you," said {f} and the {f2}. "You have a big heart."')
    s.close(s.pick(["share", "help", "kind"]), None, 0.7)


def heavy_thing(s):
    s.anyone(0.55)
    s.meet()
    s.friend()
    s.one_day()
    thing, s.v["where"], s.v["end"] = s.pick([("turnip", "out of the ground", "made soup for everyone"), ("pumpkin", "to the house", "made a big pie for everyone"), ("log", "off the road", "sat on it and had lunch"),
                                              ("rock", "off the road", "sat down and laughed"), ("cart", "out of the mud", "all took a ride on it"), ("boat", "to the water", "all went for a ride"), ("carrot", "out of the ground", "ate it together")])
    s.v["thing"] = thing
    ground = s.v["where"] == "out of the ground"
    s.v["verb"] = "pull" if ground or thing in ("cart", "boat") else "push"
    s.v["past"] = s.v["verb"] + "ed"
    s.add("{oneday}, {h} wanted to {verb} a [huge|very big|big] {thing} {where}.", "{oneday}, {h} found a [huge|very big] {thing}. {He} had to {verb} it {where}.")
    s.add("{He} {past} and {past}, but the {thing} did not move.", "{He} {past} with all {his} strength. It did not move.")
    s.add('{He} called {mf}. "Can you help me?" {he} asked.', 'Then {mf} came by. "Let me help you," said {f}.')
    s.add("They {past} together, but the {thing} was too heavy.", '"One, two, three!" they said. The {thing} moved a little, but then it stopped.')
    s.v["c1"] = s.pick(["dog", "goat", "horse", "cow", "bear"])
    s.v["c2"] = s.pick(["mouse", "ladybug", "chick", "kitten", "ant"])
    for key in ("c1", "c2"):
        if s.v[key] in (s.v["kind"], s.v["fkind"]):
            s.v[key] = "donkey" if key == "c1" else "beetle"
    s.add("A {c1} came to help too. They {past}, but it was still too heavy.", "They asked a {c1} to help. Now there were three of them, but the {thing} would not move.")
    s.add('Then a tiny {c2} came. "I can help," said the {c2}. {f} laughed. "You are too small!"', 'At last a little {c2} said, "Let me help." Nobody thought that the {c2} was strong enough.')
    s.add('"Everyone can help," said {h}.', '"Every little bit helps," {h} said.')
    s.add("They all {past} together. One, two, three! And the {thing} went {where}!", "{h}, {f}, the {c1}, and the {c2} {past} as hard as they could. Up it came!" if ground else "{h}, {f}, the {c1}, and the {c2} {past} as hard as they could. It moved!")
    s.add("They cheered, and then they {end}.", '"We did it!" they shouted. They {end}.')
    s.close("team", None, 0.75)


def be_yourself(s):
    s.beast()
    wish, s.v["try1"], s.v["oops"] = s.pick([
        ("fly like a bird", "tied two leaves to {his} arms and jumped off a rock", "fell into a bush"),
        ("roar like a lion", "opened {his} mouth and tried to roar", "only made a tiny squeak"),
        ("swim like a fish", "jumped into the deep water", "swallowed a lot of it"),
        ("be as tall as a giraffe", "walked on two long sticks", "fell down on {his} nose"),
        ("have bright colors like a peacock", "painted {self} red and blue", "had to wash in the rain"),
        ("hang from a tree like a monkey", "climbed up and hung from a branch", "dropped down with a bump")])
    if s.v["kind"] in ("bird", "owl", "duck", "chick", "penguin", "monkey", "lion", "dragon", "frog", "turtle", "beaver"):
        wish, s.v["try1"], s.v["oops"] = ("be as tall as a giraffe", "walked on two long sticks", "fell down on {his} nose")
    s.v["wish"], s.v["try1"], s.v["oops"] = wish, s.render(s.v["try1"]), s.render(s.v["oops"])
    s.meet()
    s.add("But {h} was not happy. {He} wanted to {wish}.", '"I wish I could {wish}," {he} said every day.')
    s.one_day()
    s.add("{oneday}, {he} {try1}. But {he} {oops}.", "So {he} {try1}. Oh no! {He} {oops}.")
    s.add("The others laughed, and {h} felt very sad.", '"I am good at nothing," said {h}.', "{h} sat down and cried.")
    s.v["wise"] = s.pick(["old owl", "wise old turtle", "gray goose", "old badger"])
    s.add('A {wise} saw {him}. "Why do you want to be someone else?" asked the {wise}.', '"Everyone has a gift," said a {wise}. "You will find yours."')
    s.friend()
    can, need = s.pick([("run fast", "{f} was lost in the tall grass, and {h} ran fast and found {fhim}"), ("hear very well", "{h} heard a small cry far away. It was {f}, who was stuck under a log, and {h} helped {fhim} out"),
                        ("dig", "a rock fell in front of {f}'s home, and {h} dug a way out"), ("tell funny stories", "{f} was sick and sad, and {h} told so many funny stories that {f} laughed again")])
    s.v["need"] = s.render(need)
    s.v["mf2"] = s.v["mf"]
    s.add("The next day, {mf} was in trouble. {need}.".replace("{need}", s.v["need"][0].upper() + s.v["need"][1:]))
    s.add('"You saved me!" said {f}. "Nobody else could do that."' if can != "tell funny stories" else '"You made me well!" said {f}. "Nobody else could do that."')
    s.add("{h} smiled. {He} did not want to {wish} anymore.", '"I am glad that I am a {kind}," said {h}.')
    s.close("self", None, 0.7)


def new_sibling(s):
    s.kid()
    s.meet()
    s.family(["mom", "dad"])
    s.sibling()
    s.v["sibw"] = "sister" if s.v["bhe"] == "she" else "brother"
    s.add("One day, {his} mom had a baby. {h} had a new baby {sibw} named {b}.", "One day, there was a new baby at home. It was {his} baby {sibw}, {b}.")
    s.add("Everyone looked at {b} all the time. Nobody played with {h}.", "{b} cried a lot, and {g} was always tired.")
    s.add('"I do not like the baby," said {h}.', "{h} felt alone and a little angry.", '"The baby is too loud," {h} said.')
    s.one_day()
    s.add("One night, {b} cried and cried. Mom sang, and Dad walked up and down, but {b} did not stop.", "One afternoon, {b} began to cry. {g} tried everything, but {b} cried even more.")
    s.add("{h} went to the little bed and looked in.", "{h} came closer and held out one finger.")
    s.toy(W.SOFT_TOYS)
    s.v["act"] = s.pick(["made a funny face", "sang a little song", "gave {b} the {adj} {toy}", "danced in a circle"])
    s.v["act"] = s.render(s.v["act"])
    s.add("{He} {act}.", "Then {he} {act}.")
    s.add("{b} stopped crying and looked at {him}. Then {b} laughed!", "{b} was quiet. Then {bhe} gave {h} a big smile.")
    s.add('"{b} likes you best of all," said {G}.', '"Look! {b} loves you," said {G}. "You are a wonderful big {bigw}."'.replace("{bigw}", "sister" if s.v["he"] == "she" else "brother"))
    s.add("{h} was so proud. From then on, {he} helped every day.", "{h} held the baby's tiny hand. {He} was not angry anymore.")
    s.close("friend", s.v["b"], 0.3)


def moon_trip(s):
    s.anyone(0.3)
    s.meet()
    s.toy(["blanket", "box", "bed", "boat", "bike", "balloon"])
    if s.v["toy"] in ("box", "bed") and s.v["adj"] in W.QUALITIES:
        s.v["adj"] = "big"
    goal = s.pick(["the moon", "a land of candy", "the bottom of the sea", "an island of dragons", "the clouds", "a castle in the sky"])
    s.v["goal"] = goal
    s.friend()
    s.one_day()
    s.add("One night, {h} sat on {his} {adj} {toy} and it began to fly!" if s.v["toy"] not in ("balloon",) else "One night, {h} held on to a {adj} balloon, and it began to fly!")
    s.add("It took {him} up, over the trees, all the way to {goal}." if goal != "the bottom of the sea" else "It took {him} over the trees, and then down, down, to the bottom of the sea.")
    s.v["who"] = {"the moon": "moon mouse", "a land of candy": "candy king", "the bottom of the sea": "little fish", "an island of dragons": "baby dragon", "the clouds": "cloud sheep", "a castle in the sky": "little giant"}[goal]
    s.add("There {he} met a {who}. The {who} was sad.", 'A {who} came to meet {him}. "Can you help me?" asked the {who}.')
    s.v["lost"] = s.pick(["crown", "bell", "song", "shoe", "lamp"])
    if s.v["lost"] == "song":
        s.add('"I forgot my song," said the {who}. "Now I cannot sleep."')
        s.add("{h} knew many songs. {He} sang one, and the {who} sang along.")
        s.add('"That is a good song," said the {who}. "I will never forget it."')
    else:
        s.v["lspot"] = s.pick(["behind a hill", "under a big stone", "in a deep hole", "on top of a tower"])
        s.add('"I lost my {lost}," said the {who}. "I looked everywhere."')
        s.add("They looked together. {h} found the {lost} {lspot}.")
        s.add('"You found it!" cried the {who}, and danced with joy.')
    s.add("Then it was time to go home. The {toy} flew back to {h}'s room." if not s.animal else "Then it was time to go home. The {toy} flew all the way back.")
    s.add("In the morning, {h} told {mf} about it. \"It was only a dream,\" said {f}.", '"Was it a dream?" {h} asked in the morning.')
    s.v["proof"] = s.pick(["a little star", "a shiny feather", "a tiny gold coin", "a small silver button"])
    s.add("But on the {toy}, there was {proof}." if s.v["toy"] != "balloon" else "But next to {his} bed, there was {proof}.")
    s.add("{h} smiled. {He} knew that it was real.", "{h} put it in {his} pocket and smiled." if not s.animal else "{h} kept it and smiled.")


def lost_tooth(s):
    s.kid()
    s.meet()
    s.family(["mom", "dad", "grandma", "grandpa"])
    s.v["food"] = s.pick(["an apple", "a carrot", "a piece of bread", "a cookie", "a pear"])
    s.add("One day, {h} had a loose tooth. {He} was afraid to lose it.", "One morning, {h} felt that {his} tooth was loose. It moved when {he} touched it.")
    s.add('"Will it hurt?" {he} asked {g}. "No," said {G}. "A new tooth will grow."', '{g} smiled. "That means you are growing up," said {G}.')
    s.add("{h} did not want to eat and did not want to laugh.", "{h} kept {his} mouth shut all day.")
    s.add("Then {he} got very hungry. {He} took a small bite of {food}. Pop! The tooth came out.", "But later {he} forgot about it and bit into {food}. Pop! Out came the tooth.")
    s.add('"It did not hurt at all!" said {h}.', "{h} looked in the mirror and laughed. There was a funny gap.")
    if s.chance(0.5):
        s.add("But where was the tooth? It had rolled [under the table|behind the couch|across the floor].")
        s.add("{h} and {G} looked for it together. {h} found it next to {his} {sh}.".replace("{sh}", s.pick(["shoe", "chair", "ball", "book"])))
    s.add("That night, {he} put the tooth under {his} pillow.", "{h} put the tooth in a tiny box under the pillow.")
    s.add("In the morning, there was a shiny coin!", "When {he} woke up, the tooth was gone, and there was a gold coin.")
    s.add('"Look, {G}!" {he} shouted. "I hope I lose another one soon!"', "{h} showed the coin to {g} and gave a big smile with a gap in it.")
    s.close("brave", None, 0.5)
